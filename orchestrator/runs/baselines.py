"""Baselines by rule: the commit that a contender is compared with.

A git ref has no colon in its name, so a rule is allowed wherever a baseline can be named.
`merge-base:main` is the commit where the contender left the branch. `newest-measured:main` is the
newest commit of the branch that has results of this benchmark.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from orchestrator.benchmarks.models import Benchmark, Commit
from orchestrator.benchmarks.refs import Refs
from orchestrator.benchmarks.services import repository_of
from orchestrator.core.errors import InvalidRequestError

#: Older commits are too old to be a baseline.
MAX_COMMITS = 2000


def is_rule(baseline: str) -> bool:
    return ":" in baseline


def baseline_of(benchmark: Benchmark, rule: str, contenders: list[Commit], refs: Refs) -> Commit:
    """Find the baseline by a rule; InvalidRequestError if it is unknown or finds no commit."""
    name, _, branch = rule.partition(":")
    find = _RULES.get(name)
    if find is None or not branch:
        known = ", ".join(f"{each}:BRANCH" for each in _RULES)
        raise _wrong(f"expected a commit, branch or tag, or one of {known}; got {rule!r}")
    if not contenders:
        raise _wrong(f"{rule} needs a contender: name the commit to compare")
    return find(benchmark, branch, contenders, refs)


def _merge_base(benchmark: Benchmark, branch: str, contenders: list[Commit], refs: Refs) -> Commit:
    """Return the merge base, or the first parent of a contender that is already on the branch."""
    contender = contenders[0]
    tip = refs.commit(branch)
    sha = repository_of(benchmark.project).merge_base(tip.sha, contender.sha)
    if sha is None:
        raise _wrong(f"{contender.short_sha} and {branch} have no commit in common")
    if sha == contender.sha:
        if not contender.parents:
            raise _wrong(f"{contender.short_sha} is the first commit and has no parent")
        sha = contender.parents[0]
    return refs.commit(sha)


def _newest_measured(
    benchmark: Benchmark, branch: str, contenders: list[Commit], refs: Refs
) -> Commit:
    tip = refs.commit(branch)
    line = repository_of(benchmark.project).first_parents(tip.sha)[:MAX_COMMITS]
    left = [sha for sha in line if sha not in {commit.sha for commit in contenders}]
    # Imported results count as well: they have points too.
    measured = set(
        Commit.objects.filter(
            project=benchmark.project,
            sha__in=left,
            points__series__benchmark=benchmark,
            points__trials__gt=0,
        ).values_list("sha", flat=True)
    )
    found = next((sha for sha in left if sha in measured), None)
    if found is None:
        raise _wrong(
            f"of the newest {len(left)} commits of {branch} none was measured with "
            f"{benchmark.slug}: name a commit, or measure {branch} first"
        )
    return refs.commit(found)


def _wrong(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, field="baseline")


_RULES: Mapping[str, Callable[[Benchmark, str, list[Commit], Refs], Commit]] = MappingProxyType(
    {"merge-base": _merge_base, "newest-measured": _newest_measured}
)
