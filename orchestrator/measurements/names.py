"""Resolve the names in a client's results to row ids, and create rows for new names.

Facts that never change are remembered in the process: the id of a host, commit or case of a name.
Permission to write is never remembered.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.matrix import CaseSpec, build_case
from orchestrator.benchmarks.models import Benchmark, Project
from orchestrator.benchmarks.reported_commits import ReportedCommit, store_reported_commit
from orchestrator.benchmarks.selectors import load_benchmark
from orchestrator.benchmarks.services import store_case_rows
from orchestrator.core.errors import NotFoundError
from orchestrator.fleet.external import provide_external_host
from orchestrator.fleet.models import Host, HostChange, HostTransport
from orchestrator.measurements.incoming import CommitMetadata, ResultIn

Found = TypeVar("Found")

#: The limit of remembered names of each kind.
MOST_REMEMBERED = 50_000


class NameCache:
    """A cache of values by name; emptied as a whole when it is full."""

    def __init__(self) -> None:
        self.known: dict[Hashable, Any] = {}

    def keep(self, name: Hashable, value: Found) -> Found:
        if len(self.known) >= MOST_REMEMBERED:
            self.forget()
        self.known[name] = value
        return value

    def forget(self) -> None:
        """Replace the mapping: another thread may be reading the old one."""
        self.known = {}


_hosts, _commits, _cases = NameCache(), NameCache(), NameCache()


def forget_names() -> None:
    """Forget all names; call it after a delete of rows that may be remembered."""
    for each in (_hosts, _commits, _cases):
        each.forget()


def remember_commits(project: int, ids: Mapping[str, int]) -> None:
    """Remember commits of a project by their hashes, after a lookup or insert elsewhere."""
    for sha, pk in ids.items():
        _commits.keep((project, sha), pk)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CachedHost:
    id: UUID
    is_external: bool


class Names:
    """The names of one post. `faults` are (path, problem) of unknown names."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._team = member.team.pk
        self._changes: dict[UUID, list[datetime]] = {}
        self.faults: list[tuple[str, str]] = []

    def benchmarks(self, results: Iterable[ResultIn]) -> list[Benchmark | None]:
        """Return the benchmark of each result; None and a fault if there is none of that name."""
        here: dict[tuple[str | None, str], Benchmark | None] = {}
        benchmarks = []
        for place, result in enumerate(results):
            name = (result.project, result.benchmark)
            if name not in here:
                here[name] = self._benchmark(place, *name)
            benchmarks.append(here[name])
        return benchmarks

    def _benchmark(self, place: int, project: str | None, slug: str) -> Benchmark | None:
        """Read it in each post: it may have been deleted, and another one may have the name."""
        try:
            benchmark = load_benchmark(self._member, slug, project)
        except NotFoundError as error:
            self.faults.append((f"results[{place}].benchmark", str(error)))
            return None
        if benchmark.is_draft:
            fault = f"{slug} is a draft: save the benchmark before you send results"
            self.faults.append((f"results[{place}].benchmark", fault))
            return None
        return benchmark

    def host(self, result: ResultIn) -> UUID:
        return self._host(result.host, result.profile).id

    def epoch(self, result: ResultIn, at: datetime) -> int:
        """Count the changes of the host before `at`; 0 for an external host, which is not
        inspected."""
        host = self._host(result.host, result.profile)
        if host.is_external:
            return 0
        if host.id not in self._changes:
            changes = HostChange.objects.filter(host=host.id).order_by("at")
            self._changes[host.id] = list(changes.values_list("at", flat=True))
        return bisect_right(self._changes[host.id], at)

    def commit(self, benchmark: Benchmark, result: ResultIn) -> int:
        key = (benchmark.project_id, result.commit)
        if (known := _commits.known.get(key)) is not None:
            return int(known)
        facts = result.commit_facts or CommitMetadata()
        commit = ReportedCommit(sha=result.commit, **dict(facts))
        # Read it again: its default branch and its address may have changed.
        project = Project.objects.get(pk=benchmark.project_id)
        return _commits.keep(key, store_reported_commit(project=project, commit=commit).pk)

    def cases(self, benchmarks: Sequence[Benchmark], results: Sequence[ResultIn]) -> list[int]:
        """Return the case of each result; new cases are created in the order of their keys."""
        known = _cases.known
        # As text: 1, 1.0 and true are equal keys of a mapping, but three different cases.
        keys = [
            (benchmark.pk, repr(result.parameters))
            for benchmark, result in zip(benchmarks, results, strict=True)
        ]
        here = {key: known[key] for key in {*keys} if key in known}
        missing: dict[int, tuple[Benchmark, dict[str, CaseSpec]]] = {}
        for key, benchmark, result in zip(keys, benchmarks, results, strict=True):
            if key not in here:
                _, specs = missing.setdefault(benchmark.pk, (benchmark, {}))
                specs.setdefault(key[1], build_case(result.parameters))
        for pk in sorted(missing):
            here |= _create_cases(*missing[pk])
        return [here[key] for key in keys]

    def _host(self, name: str, profile: str | None) -> _CachedHost:
        key = (self._team, name)
        if (known := _hosts.known.get(key)) is not None:
            return known
        host = provide_external_host(member=self._member, name=name, profile=profile)
        return _hosts.keep(key, _build_cached_host(host))


def _build_cached_host(host: Host) -> _CachedHost:
    return _CachedHost(id=host.pk, is_external=host.transport == HostTransport.EXTERNAL)


def _create_cases(
    benchmark: Benchmark, specs: Mapping[str, CaseSpec]
) -> dict[tuple[int, str], int]:
    by_key = {spec.key: spec for spec in specs.values()}
    keys = sorted(by_key)
    rows = store_case_rows(benchmark=benchmark, cases=[by_key[key] for key in keys])
    ids = dict(zip(keys, rows, strict=True))
    return {
        (benchmark.pk, text): _cases.keep((benchmark.pk, text), ids[spec.key])
        for text, spec in specs.items()
    }
