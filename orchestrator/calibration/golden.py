"""Golden runs: repeated control measurements that detect a drift of a host's speed."""

import logging
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from statistics import median
from uuid import UUID

from django.db import transaction
from django.db.models import Max, QuerySet

from cli.pitwall.units import format_change, format_value
from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.selectors import get_stored_spec
from orchestrator.calibration.models import GoldenOutcome, GoldenVerdict
from orchestrator.core.clock import utc_now
from orchestrator.fleet.host_settings import quarantine
from orchestrator.fleet.models import Host, HostState
from orchestrator.fleet.selectors import load_host, load_host_changes
from orchestrator.loadtools.metrics import METRICS
from orchestrator.measurements.readings import load_values
from orchestrator.runs.golden import (
    load_due_golden_checks,
    load_waiting_golden_checks,
    start_golden,
)
from orchestrator.runs.models import GoldenCheck, Run, Trial
from orchestrator.runs.states import COUNTED_VALIDITIES, RUN_ENDED, RunState
from orchestrator.stats.drift import (
    FIRST_VALUES,
    MIN_EARLIER,
    REMEMBERED,
    Drift,
    SlowDrift,
    measure_drift,
    measure_slow_drift,
)

logger = logging.getLogger(__name__)

#: A single value is compared with the latest references only: a slow drift has its own test.
MAX_EARLIER = 30

#: case key → metric key → value
Readings = dict[str, dict[str, float]]
#: Case key and metric key.
Place = tuple[str, str]
_AGAIN = "; it is measured again"
#: A slow drift is reported, but the values stay references: a member decides what to do.
_REFERENCES = frozenset({GoldenVerdict.LEARNING, GoldenVerdict.STEADY, GoldenVerdict.SLOW_DRIFT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a golden run, in words for the host's page.

    `repeats`: it is measured again at once. A repeated run is not repeated.
    """

    verdict: GoldenVerdict
    message: str
    readings: Readings = field(default_factory=dict)
    epoch: int = 0
    repeats: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenStatus:
    """The state of a host's golden runs for pages; `outcome` is the latest one."""

    check: GoldenCheck
    outcome: GoldenOutcome | None

    @property
    def word(self) -> str:
        if not self.check.judged:
            return "running"
        return self.outcome.verdict if self.outcome else "planned"


def advance_golden_checks(now: datetime) -> None:
    """Judge ended golden runs and start due ones.

    May run twice or at the same time as another: each step claims its row first.
    """
    for check in load_waiting_golden_checks():
        _run_guarded(judge_golden, check)
    for check in load_due_golden_checks(now):
        _run_guarded(partial(start_golden, now=now), check)


def judge_golden(check: GoldenCheck) -> GoldenOutcome | None:
    """Return the outcome of a check's last run.

    It is None if the run has not ended, or another tick was first. A host that failed its golden
    run or has drifted is quarantined, with the reason.
    """
    run = check.last_run
    if run is None:
        # The run was deleted: there is nothing to judge.
        GoldenCheck.objects.filter(pk=check.pk, last_run=None).update(judged=True)
        return None
    if run.state not in RUN_ENDED:
        return None
    finding = _judge_check(check, run)
    with transaction.atomic():
        mine = GoldenCheck.objects.filter(pk=check.pk, judged=False, last_run=run)
        if not mine.update(judged=True, message=finding.message, repeats=finding.repeats):
            return None
        outcome = _store(check, run, finding)
        if finding.verdict in {GoldenVerdict.FAILED, GoldenVerdict.DRIFTED}:
            quarantine(host=check.host, reason=f"golden run: {finding.message}")
    return outcome


def reset_references(*, member: Member, host_id: UUID) -> None:
    """Discard the references of a host, so that it learns its values again.

    For a host that became faster or slower for a known and permanent reason.
    """
    member.require(Role.MEMBER, to="reset the references of a host")
    host = load_host(member, host_id)
    with transaction.atomic():
        GoldenOutcome.objects.filter(host=host, is_reference=True).update(is_reference=False)
        record_audit(member=member, action="golden.references_forgotten", subject=host)


def load_golden_statuses(member: Member) -> dict[UUID, GoldenStatus]:
    """Return the golden status of the team's hosts, by host."""
    checks = GoldenCheck.objects.filter(
        host__team=member.team, benchmark__deleted_at=None
    ).select_related("benchmark__project", "commit", "last_run")
    outcomes = GoldenOutcome.objects.filter(host__team=member.team).order_by("host_id", "-at")
    newest = {each.host_id: each for each in outcomes.distinct("host_id")}
    return {
        check.host_id: GoldenStatus(check=check, outcome=newest.get(check.host_id))
        for check in checks
    }


def _run_guarded(step: Callable[[GoldenCheck], object], check: GoldenCheck) -> None:
    """An error of one host must not stop the others."""
    try:
        step(check)
    except Exception:
        logger.exception("the golden run of host %s cannot be processed", check.host_id)


def _judge_check(check: GoldenCheck, run: Run) -> Finding:
    if run.state == RunState.CANCELLED:
        return Finding(
            verdict=GoldenVerdict.NOT_JUDGED, message="not judged: its golden run was cancelled"
        )
    if run.state == RunState.FAILED:
        return _build_failed_finding(check.host, run)
    readings = _load_readings(run)
    if not readings:
        return Finding(
            verdict=GoldenVerdict.FAILED,
            message=f"failed: no trial of its golden run is valid; {_load_first_reason(run)}",
        )
    return _compare_with_references(check, run, readings)


def _build_failed_finding(host: Host, run: Run) -> Finding:
    why = run.message.strip() or "no reason was given"
    host.refresh_from_db(fields=["state"])
    if host.state == HostState.UNREACHABLE:
        # A laptop that was taken home has not drifted.
        message = f"not judged: the host could not be reached: {why}"
        return Finding(verdict=GoldenVerdict.NOT_JUDGED, message=message)
    return Finding(verdict=GoldenVerdict.FAILED, message=f"failed: {why}"[:2000])


def _compare_with_references(check: GoldenCheck, run: Run, readings: Readings) -> Finding:
    epoch = count_epoch(check.host, run)
    outcomes = _load_comparable(check, run, epoch)
    references = outcomes.filter(is_reference=True)
    newest = list(references.order_by("-at")[:REMEMBERED])
    first = list(references.order_by("at")[:FIRST_VALUES])
    earlier = newest[:MAX_EARLIER]
    known = _measure_drifts(readings, earlier, check.tolerance)
    unusual = {where: drift for where, drift in known.items() if drift.drifted}
    before = outcomes.order_by("-at").first()
    first_try = before if before and before.verdict == GoldenVerdict.UNUSUAL else None
    confirmed = _select_confirmed(unusual, first_try, earlier, check.tolerance)
    repeats = bool(unusual) and first_try is None
    slow = {} if unusual else _find_slow_drifts(readings, first, newest)
    if not known:
        verdict, message = GoldenVerdict.LEARNING, _describe_learning(len(earlier))
    elif confirmed:
        verdict, message = GoldenVerdict.DRIFTED, _describe_drift(confirmed, earlier, len(readings))
    elif unusual:
        message = _describe_drift(unusual, earlier, len(readings), word="unusual")
        verdict, message = GoldenVerdict.UNUSUAL, f"{message}{_AGAIN if repeats else ''}"
    elif slow:
        verdict = GoldenVerdict.SLOW_DRIFT
        message = _describe_slow_drift(slow, first, len(readings))
    else:
        verdict, message = GoldenVerdict.STEADY, _describe_steady(known, len(earlier))
    return Finding(
        verdict=verdict, message=message, readings=readings, epoch=epoch, repeats=repeats
    )


def _measure_drifts(
    readings: Readings, earlier: list[GoldenOutcome], tolerance: float
) -> dict[Place, Drift]:
    """Return the drift of each value that has enough earlier ones."""
    number = max(1, sum(len(values) for values in readings.values()))
    drifts = {
        (case, key): measure_drift(
            value, _list_values(earlier, case, key), tolerance=tolerance, values=number
        )
        for case, values in readings.items()
        for key, value in values.items()
    }
    return {place: drift for place, drift in drifts.items() if drift is not None}


def _select_confirmed(
    unusual: dict[Place, Drift],
    first_try: GoldenOutcome | None,
    earlier: list[GoldenOutcome],
    tolerance: float,
) -> dict[Place, Drift]:
    """Return the unusual values that the first try measured as well, on the same side."""
    if first_try is None:
        return {}
    first = _measure_drifts(first_try.readings, earlier, tolerance)
    return {
        place: drift
        for place, drift in unusual.items()
        if place in first and drift.is_confirmed_by(first[place])
    }


def _find_slow_drifts(
    readings: Readings, first: list[GoldenOutcome], newest: list[GoldenOutcome]
) -> dict[Place, SlowDrift]:
    """Return the values whose moving average has left the first references."""
    known = {outcome.pk for outcome in first}
    later = [outcome for outcome in reversed(newest) if outcome.pk not in known]
    number = max(1, sum(len(values) for values in readings.values()))
    slow = {}
    for case, values in readings.items():
        for key, value in values.items():
            drift = measure_slow_drift(
                _list_values(first, case, key),
                [*_list_values(later, case, key), value],
                values=number,
            )
            if drift is not None and drift.drifted:
                slow[case, key] = drift
    return slow


def _load_readings(run: Run) -> Readings:
    """Return medians over valid and suspect trials, by case and primary metric."""
    spec = get_stored_spec(run.definition)
    trials = Trial.objects.filter(job__run=run, validity__in=COUNTED_VALIDITIES)
    cases = {trial.pk: trial.case for trial in trials.select_related("case")}
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for trial, readings_of_trial in load_values(cases, spec.primary_metrics).items():
        own = spec.list_case_metrics(cases[trial].parameters)
        for key, value in readings_of_trial.items():
            if key in own:
                values[cases[trial].key, key].append(value)
    readings: Readings = defaultdict(dict)
    for (case, key), samples in sorted(values.items()):
        readings[case][key] = median(samples)
    return dict(readings)


def count_epoch(host: Host, run: Run) -> int:
    """Return how often the host had changed before the run began on it."""
    taken = run.jobs.aggregate(last=Max("snapshot__taken_at"))["last"] or utc_now()
    return load_host_changes(host).filter(at__lte=taken).count()


def _load_comparable(check: GoldenCheck, run: Run, epoch: int) -> QuerySet[GoldenOutcome]:
    """Return the judged runs of the same work in the same epoch of the host."""
    outcomes = GoldenOutcome.objects.filter(
        host=check.host,
        epoch=epoch,
        run__definition__benchmark=run.definition.benchmark,
        run__definition__digest=run.definition.digest,
        run__variants__commit=check.commit,
    ).exclude(run=run)
    return outcomes.exclude(verdict=GoldenVerdict.NOT_JUDGED)


def _list_values(earlier: list[GoldenOutcome], case: str, key: str) -> list[float]:
    readings = (outcome.readings.get(case, {}).get(key) for outcome in earlier)
    return [value for value in readings if value is not None]


def _store(check: GoldenCheck, run: Run, finding: Finding) -> GoldenOutcome:
    return GoldenOutcome.objects.create(
        run=run,
        host=check.host,
        verdict=finding.verdict,
        readings=finding.readings,
        epoch=finding.epoch,
        is_reference=finding.verdict in _REFERENCES,
        message=finding.message,
        at=utc_now(),
    )


def _describe_learning(earlier: int) -> str:
    return (
        f"learning: {earlier + 1} of the {MIN_EARLIER} golden runs of this commit that are needed "
        "before one can be judged"
    )


def _describe_steady(known: dict[Place, Drift], earlier: int) -> str:
    (_, key), worst = max(known.items(), key=lambda item: abs(item[1].change))
    return (
        f"steady: {METRICS[key].title} moved most, by {format_change(worst.change)} "
        f"against {earlier} earlier golden runs"
    )


def _describe_drift(
    drifted: dict[Place, Drift], earlier: list[GoldenOutcome], cases: int, *, word: str = "drifted"
) -> str:
    """Return the metric with the largest drift, its size, the earlier values, and its start."""
    (case, key), worst = max(drifted.items(), key=lambda item: abs(item[1].change))
    info = METRICS[key]
    value, low, high = (
        format_value(each, info.unit) for each in (worst.value, worst.low, worst.high)
    )
    others = f"; {len(drifted) - 1} other values moved too" if len(drifted) > 1 else ""
    return (
        f"{word}: {info.title}{f' of case {case}' if cases > 1 else ''} moved by "
        f"{format_change(worst.change)} to {value}, where {worst.earlier} earlier golden runs had "
        f"{low} to {high} and {format_change(worst.allowed).lstrip('+')} is allowed; "
        f"steady until {earlier[0].at:%Y-%m-%d %H:%M} UTC{others}"
    )


def _describe_slow_drift(
    slow: dict[Place, SlowDrift], first: list[GoldenOutcome], cases: int
) -> str:
    (case, key), worst = max(slow.items(), key=lambda item: abs(item[1].change))
    begin = first[-1].at
    return (
        f"slow drift: {METRICS[key].title}{f' of case {case}' if cases > 1 else ''} has moved by "
        f"{format_change(worst.change)} since the first {worst.first} golden runs "
        f"(until {begin:%Y-%m-%d}), where {format_change(worst.allowed).lstrip('+')} is chance; "
        "the host stays in use"
    )


def _load_first_reason(run: Run) -> str:
    trials = Trial.objects.filter(job__run=run).exclude(validity__in=COUNTED_VALIDITIES)
    for reasons, message in trials.order_by("position").values_list("reasons", "message"):
        if reasons or message:
            return str((reasons or [message])[0])[:500]
    return "its trials have no reason"
