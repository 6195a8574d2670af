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
from django.db.models import Max

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
from orchestrator.stats.drift import MIN_EARLIER, Drift, measure_drift

logger = logging.getLogger(__name__)

#: A host is compared with its latest references only: slow ageing is not to be detected.
MAX_EARLIER = 30

#: case key → metric key → value
Readings = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a golden run, in words for the host's page."""

    verdict: GoldenVerdict
    message: str
    readings: Readings = field(default_factory=dict)
    epoch: int = 0


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
        if not mine.update(judged=True, message=finding.message):
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
    earlier = _load_references(check, run, epoch)
    drifts = {
        (case, key): measure_drift(
            value, _list_values(earlier, case, key), tolerance=check.tolerance
        )
        for case, values in readings.items()
        for key, value in values.items()
    }
    known = {where: drift for where, drift in drifts.items() if drift is not None}
    drifted = {where: drift for where, drift in known.items() if drift.drifted}
    if not known:
        verdict, message = GoldenVerdict.LEARNING, _describe_learning(len(earlier))
    elif drifted:
        verdict, message = GoldenVerdict.DRIFTED, _describe_drift(drifted, earlier, len(readings))
    else:
        verdict, message = GoldenVerdict.STEADY, _describe_steady(known, len(earlier))
    return Finding(verdict=verdict, message=message, readings=readings, epoch=epoch)


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


def _load_references(check: GoldenCheck, run: Run, epoch: int) -> list[GoldenOutcome]:
    """Return the runs that this one may be compared with, newest first."""
    outcomes = GoldenOutcome.objects.filter(
        host=check.host,
        is_reference=True,
        epoch=epoch,
        run__definition__benchmark=run.definition.benchmark,
        run__definition__digest=run.definition.digest,
        run__variants__commit=check.commit,
    ).exclude(run=run)
    return list(outcomes.order_by("-at")[:MAX_EARLIER])


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
        is_reference=finding.verdict in {GoldenVerdict.LEARNING, GoldenVerdict.STEADY},
        message=finding.message,
        at=utc_now(),
    )


def _describe_learning(earlier: int) -> str:
    return (
        f"learning: {earlier + 1} of the {MIN_EARLIER} golden runs of this commit that are needed "
        "before one can be judged"
    )


def _describe_steady(known: dict[tuple[str, str], Drift], earlier: int) -> str:
    (_, key), worst = max(known.items(), key=lambda item: abs(item[1].change))
    return (
        f"steady: {METRICS[key].title} moved most, by {format_change(worst.change)} "
        f"against {earlier} earlier golden runs"
    )


def _describe_drift(
    drifted: dict[tuple[str, str], Drift], earlier: list[GoldenOutcome], cases: int
) -> str:
    """Return the metric with the largest drift, its size, the earlier values, and its start."""
    (case, key), worst = max(drifted.items(), key=lambda item: abs(item[1].change))
    info = METRICS[key]
    value, low, high = (
        format_value(each, info.unit) for each in (worst.value, worst.low, worst.high)
    )
    others = f"; {len(drifted) - 1} other values moved too" if len(drifted) > 1 else ""
    return (
        f"drifted: {info.title}{f' of case {case}' if cases > 1 else ''} moved by "
        f"{format_change(worst.change)} to {value}, where {worst.earlier} earlier golden runs had "
        f"{low} to {high} and {format_change(worst.allowed).lstrip('+')} is allowed; "
        f"steady until {earlier[0].at:%Y-%m-%d %H:%M} UTC{others}"
    )


def _load_first_reason(run: Run) -> str:
    trials = Trial.objects.filter(job__run=run).exclude(validity__in=COUNTED_VALIDITIES)
    for reasons, message in trials.order_by("position").values_list("reasons", "message"):
        if reasons or message:
            return str((reasons or [message])[0])[:500]
    return "its trials have no reason"
