"""The latency of one case of one commit on one host, merged over its trials."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.fleet.models import Host
from orchestrator.results.distributions import merged
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import TrialState, Validity
from orchestrator.stats.histogram import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLatency:
    """`trials` are those that were merged; `suspect` counts them, `left_out` the invalid others.

    `distribution` is None where no answer of theirs was good.
    """

    case: Case
    commit: Commit
    host: Host
    definition: Definition
    trials: tuple[UUID, ...]
    suspect: int
    left_out: int
    distribution: Histogram | None


def case_latency(
    member: Member,
    *,
    benchmark: Benchmark,
    case: Case,
    commit: Commit,
    run: Run | None = None,
    host: Host | None = None,
    invalid: bool = False,
) -> CaseLatency:
    """Over all runs or over one; of several versions of the definition only the newest counts.

    `invalid`: those trials as well. NotFoundError where nothing was measured, InvalidRequestError
    where several hosts did it and none is named: they are not the same machine.
    """
    measured = Trial.objects.filter(
        job__run__team=member.team,
        job__run__definition__benchmark=benchmark,
        case=case,
        variant__commit=commit,
        state=TrialState.MEASURED,
    ).select_related("host", "job__run__definition")
    if run is not None:
        measured = measured.filter(job__run=run)
    if host is not None:
        measured = measured.filter(host=host)
    trials = list(measured.order_by("pk"))
    where = _one_host(trials, f"{case.label} of {commit.short_sha}")
    newest = max((each.job.run.definition for each in trials), key=lambda each: each.version)
    mine = [each for each in trials if each.job.run.definition == newest]
    kept = [each for each in mine if invalid or each.validity != Validity.INVALID]
    found = tuple(each.pk for each in kept)
    return CaseLatency(
        case=case,
        commit=commit,
        host=where,
        definition=newest,
        trials=found,
        suspect=sum(each.validity == Validity.SUSPECT for each in kept),
        left_out=len(mine) - len(kept),
        distribution=merged(found),
    )


def _one_host(trials: Sequence[Trial], what: str) -> Host:
    hosts = {each.host for each in trials if each.host is not None}
    if not hosts:
        raise NotFoundError(f"{what} was not measured there; start a run with it")
    if len(hosts) > 1:
        names = ", ".join(sorted(each.name for each in hosts))
        raise InvalidRequestError(f"{what} was measured on {names}: name one of them", field="host")
    return hosts.pop()
