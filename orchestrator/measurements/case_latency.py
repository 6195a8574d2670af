"""The latency of one case of one commit on one host, merged over its trials."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Definition
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.fleet.models import Host
from orchestrator.measurements.distributions import merge_trials
from orchestrator.measurements.merged_distributions import load_point_histograms, merge_points
from orchestrator.measurements.removals import check_kept
from orchestrator.results.models import Histogram as Stored
from orchestrator.results.models import HistogramKind, PointHistogram, RemovalKind
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import TrialState, Validity
from orchestrator.stats.histogram import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLatency:
    """The merged latency of a case.

    `trials` are merged now. `merged_before` counts trials whose own distribution was removed after
    it was merged. `suspect` counts suspect trials among both, `excluded` the invalid trials, which
    are not included. `distribution` is None if no request was answered successfully.
    """

    case: Case
    commit: Commit
    host: Host
    definition: Definition
    trials: tuple[UUID, ...]
    merged_before: int
    suspect: int
    excluded: int
    distribution: Histogram | None


def load_case_latency(
    member: Member,
    *,
    benchmark: Benchmark,
    case: Case,
    commit: Commit,
    run: Run | None = None,
    host: Host | None = None,
    invalid: bool = False,
) -> CaseLatency:
    """Merge the latency over all runs or over one; use the newest version of the definition only.

    `invalid` includes invalid trials. Raise NotFoundError if nothing was measured, and
    InvalidRequestError if several hosts measured the case and none is named. Raise GoneError for
    one run if its distributions were merged into those of its commits.
    """
    measured = _load_measured_trials(member, benchmark, case, commit, run, host)
    if run is not None:
        check_kept(run.pk, RemovalKind.DISTRIBUTIONS, RemovalKind.TRIALS)
    points = [] if run is not None else load_point_histograms(benchmark, case, commit, host)
    where = _require_one_host(measured, points, f"{case.label} of {commit.short_sha}")
    newest, mine, old = _select_newest_version(measured, points)
    kept = [each for each in mine if invalid or each.validity != Validity.INVALID]
    trial_ids = tuple(each.pk for each in kept)
    whole = merge_points(old, [merge_trials(trial_ids)])
    return CaseLatency(
        case=case,
        commit=commit,
        host=where,
        definition=newest,
        trials=trial_ids,
        merged_before=whole.trials,
        suspect=whole.suspect + sum(each.validity == Validity.SUSPECT for each in kept),
        excluded=whole.excluded + len(mine) - len(kept),
        distribution=whole.distribution,
    )


def _load_measured_trials(
    member: Member,
    benchmark: Benchmark,
    case: Case,
    commit: Commit,
    run: Run | None,
    host: Host | None,
) -> list[Trial]:
    """Return the trials of the team, oldest first; of all runs or hosts where None is given."""
    trials = Trial.objects.filter(
        job__run__team=member.team,
        job__run__definition__benchmark=benchmark,
        case=case,
        variant__commit=commit,
        state=TrialState.MEASURED,
        **{} if run is None else {"job__run": run},
        **{} if host is None else {"host": host},
    ).select_related("host", "job__run__definition")
    return list(trials.order_by("pk"))


def _select_newest_version(
    trials: Sequence[Trial], points: Sequence[PointHistogram]
) -> tuple[Definition, list[Trial], list[PointHistogram]]:
    """Return the newest version of the definition and its data, with each distribution once."""
    versions = [*(each.job.run.definition for each in trials), *(p.definition for p in points)]
    newest = max(versions, key=lambda each: each.version)
    mine = [each for each in trials if each.job.run.definition == newest]
    old = [each for each in points if each.definition == newest]
    return newest, _select_with_distributions(mine) if old else mine, old


def _select_with_distributions(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials whose own distribution still exists."""
    stored = Stored.objects.filter(trial__in=trials, kind=HistogramKind.OK)
    own = set(stored.values_list("trial_id", flat=True))
    return [each for each in trials if each.pk in own]


def _require_one_host(trials: Sequence[Trial], points: Sequence[PointHistogram], what: str) -> Host:
    hosts = {each.host for each in trials if each.host is not None}
    hosts |= {each.host for each in points}
    if not hosts:
        raise NotFoundError(f"{what} was not measured there; start a run with it")
    if len(hosts) > 1:
        names = ", ".join(sorted(each.name for each in hosts))
        raise InvalidRequestError(f"{what} was measured on {names}: name one of them", field="host")
    return hosts.pop()
