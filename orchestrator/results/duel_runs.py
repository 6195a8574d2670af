"""The runs of duels: two commits, the cases concerned, the host where it was seen."""

from collections.abc import Iterable, Sequence

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.choice import MAX_LENGTH
from orchestrator.benchmarks.models import Case, Commit
from orchestrator.results.models import Series
from orchestrator.runs.models import Run
from orchestrator.runs.plans import RunRequest
from orchestrator.runs.services import create_run

CASES_LENGTH = MAX_LENGTH
ROUNDS = 10


def start_run(
    *, member: Member, series: Sequence[Series], good: Commit, commit: Commit, trigger: str
) -> Run:
    """Queues the duel of two commits in these series, which share a benchmark and a host."""
    benchmark, host = series[0].benchmark, series[0].host
    return create_run(
        member=member,
        request=RunRequest(
            benchmark=benchmark.slug,
            project=benchmark.project.slug,
            baseline=good.sha,
            contenders=(commit.sha,),
            cases=cases_expression(each.case for each in series),
            hosts=(host.name,),
            rounds=ROUNDS,
        ),
        trigger=trigger,
    )


def cases_expression(cases: Iterable[Case]) -> str:
    """What chooses exactly these cases; empty for the one case of a benchmark without axes."""
    known = {case.pk: case for case in cases}
    texts = [_one(known[pk]) for pk in sorted(known)]
    return " or ".join(f"({text})" if len(texts) > 1 else text for text in texts)


def _one(case: Case) -> str:
    return " and ".join(f"{axis} == {value!r}" for axis, value in sorted(case.parameters.items()))
