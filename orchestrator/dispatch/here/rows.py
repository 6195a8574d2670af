"""The rows that a run on this machine would have, never stored."""

import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.utils.text import slugify

from orchestrator.benchmarks.choice import choose
from orchestrator.benchmarks.load_specs import estimate_trials_s
from orchestrator.benchmarks.matrix import CaseSpec, expand
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition, Project
from orchestrator.benchmarks.services import check_source
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.ids import hash_value
from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.fleet.models import Host, HostTransport
from orchestrator.runs.models import (
    UNTIL_OF_CONTESTS,
    HostRole,
    Job,
    Run,
    Trial,
    Until,
    Variant,
)
from orchestrator.runs.plans import parse_until, resolve_builds, resolve_rounds
from orchestrator.runs.trial_order import group_cases, order_trials


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRequest:
    """What to measure. `shas`: the baseline, if there is one, and the contender.

    `shared`: other work runs on this machine.
    """

    source: str
    repository: Path
    shas: tuple[str, ...]
    cases: str = ""
    rounds: int | None = None
    builds: int | None = None
    until: str = Until.ROUNDS
    shared: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRows:
    """`trials` are in the order of execution; `shas` as in the request."""

    spec: Spec
    job: Job
    cases: Sequence[Case]
    variants: Sequence[Variant]
    trials: Sequence[Trial]

    @property
    def rounds(self) -> int:
        """Return the number of rounds, the maximum if cases may be decided earlier."""
        return self.job.run.rounds

    @property
    def until(self) -> str:
        return self.job.run.until


class OwnMachine(JobHosts):
    """The hosts of a job on a single host, which needs no placement."""

    @property
    def roles(self) -> dict[str, Host]:
        assert self.job.host is not None
        return dict.fromkeys(HostRole.values, self.job.host)


def build_rows(wanted: LocalRequest) -> LocalRows:
    """Build the rows; InvalidRequestError, with the field, for an invalid definition or choice."""
    spec = check_source(wanted.source)
    if spec.repositories:
        raise InvalidRequestError(
            "repositories: this machine knows no other projects; start the run in Pitwall",
            field="repositories",
        )
    until = parse_until(wanted.until, alone=len(wanted.shas) == 1)
    if until in UNTIL_OF_CONTESTS:
        raise InvalidRequestError(
            f"{until}: contests are decided only in Pitwall; start the run there", field="until"
        )
    rounds = resolve_rounds(until, wanted.rounds, spec.rounds)
    chosen = choose(spec, expand(spec), wanted.cases)
    builds = resolve_builds(spec, wanted.builds, rounds)
    job = _build_job(spec, wanted, Run(rounds=rounds, builds=builds, until=until))
    benchmark = job.run.definition.benchmark
    cases = [_build_case_row(benchmark, number, case) for number, case in enumerate(chosen, 1)]
    variants = [
        Variant(run=job.run, commit=_build_commit(benchmark, number, sha), position=number)
        for number, sha in enumerate(wanted.shas)
    ]
    expected = estimate_trials_s(spec, chosen)
    slots = order_trials(
        len(cases), len(variants), rounds, wanted.seed, contests=group_cases(spec, chosen)
    )
    trials = [
        Trial(
            job=job,
            variant=variants[slot.variant],
            case=cases[slot.case],
            round=slot.round,
            position=place,
            expected_s=expected[slot.case],
        )
        for place, slot in enumerate(slots)
    ]
    return LocalRows(spec=spec, job=job, cases=cases, variants=variants, trials=trials)


def _build_job(spec: Spec, wanted: LocalRequest, run: Run) -> Job:
    project = Project(slug="local", name="local", repository_url=str(wanted.repository))
    data = spec.model_dump(mode="json")
    run.seed = wanted.seed
    run.definition = Definition(
        benchmark=Benchmark(project=project, slug=slugify(spec.title) or "local", title=spec.title),
        version=1,
        source=wanted.source,
        spec=data,
        axes=list(spec.matrix),
        digest=hash_value(data),
    )
    host = Host(name=_name(), transport=HostTransport.LOCAL, python=sys.executable)
    return Job(run=run, host=host, shared_hosts=wanted.shared)


def _build_case_row(benchmark: Benchmark, number: int, case: CaseSpec) -> Case:
    return Case(
        pk=number,
        benchmark=benchmark,
        key=case.key,
        parameters=dict(case.parameters),
        label=case.label,
    )


def _build_commit(benchmark: Benchmark, number: int, sha: str) -> Commit:
    return Commit(pk=number, project=benchmark.project, sha=sha)


def _name() -> str:
    return platform.node().partition(".")[0] or "this-machine"
