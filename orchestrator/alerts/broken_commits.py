"""Raise an alert for a commit of a watched branch that fails where the commit before it works.

A branch is watched if a schedule measures its new commits. A commit that crashes, does not build or
answers wrongly has no values, so it has no change point. The alert is resolved when a later commit
of the branch is measured and works in all of these cases.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Max, QuerySet

from orchestrator.accounts.members import build_system_member
from orchestrator.accounts.models import Team
from orchestrator.alerts.log import log_action
from orchestrator.alerts.models import ALERT_ENDED, Alert, AlertKind, AlertState
from orchestrator.alerts.states import lock_alerts, set_alert_state
from orchestrator.benchmarks.models import Case, Commit
from orchestrator.comparisons.exclusions import classify_trial
from orchestrator.comparisons.verdict_cache import VerdictCard, load_verdict_cards
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.states import RUN_ENDED, TrialState
from orchestrator.stats.block_outcomes import Outcome
from orchestrator.stats.comparison import Verdict

#: A run that ended earlier raises no alert any more.
LOOK_BACK = timedelta(days=1)
#: The most runs that one tick reads.
AT_ONCE = 50
#: The labels of the broken cases that the summary names.
NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenCommit:
    """A broken commit: the keys and the labels of its broken cases."""

    commit: Commit
    keys: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def summary(self) -> str:
        named = ", ".join(label for label in self.labels[:NAMED] if label)
        more = f" and {len(self.labels) - NAMED} more" if len(self.labels) > NAMED else ""
        cases = f" in {named}{more}" if named else ""
        return f"{self.commit.short_sha} is broken{cases}: it fails where the commit before works"


def raise_broken_alerts(now: datetime) -> None:
    """Raise due alerts. It may run twice: a run is in one alert at most."""
    runs = _load_branch_runs().filter(
        alerts=None, ended_at__gte=now - LOOK_BACK, verdict__cards__contains=[[Verdict.BROKEN]]
    )
    for run in runs.order_by("ended_at")[:AT_ONCE]:
        _raise_alert(run, _find_broken(run), now)


def close_repaired_alerts(now: datetime) -> None:
    """Resolve alerts whose cases work in a later commit of the branch."""
    todo = Alert.objects.filter(kind=AlertKind.BROKEN).exclude(state__in=ALERT_ENDED)
    with transaction.atomic():
        for alert in lock_alerts(todo):
            repaired = _find_repair(alert)
            if repaired is not None:
                alert.fixed_by = repaired
                text = f"resolved: {repaired.short_sha} {repaired.subject} works again"
                set_alert_state(alert, AlertState.RESOLVED, text, now)


def _load_branch_runs() -> QuerySet[Run]:
    """Return the ended runs for new commits of watched branches."""
    return (
        Run.objects.filter(
            state__in=RUN_ENDED,
            schedule__isnull=False,
            definition__benchmark__deleted_at=None,
        )
        .exclude(schedule__branch="")
        .select_related("team", "schedule", "definition__benchmark__project__team")
        .prefetch_related("variants__commit")
    )


def _find_broken(run: Run) -> list[BrokenCommit]:
    cards = load_verdict_cards(build_system_member(run.team), [run])[run.pk]
    return [_build_broken(card) for card in cards if card.verdict == Verdict.BROKEN]


def _build_broken(card: VerdictCard) -> BrokenCommit:
    cases = {each.case for each in card.changes if each.verdict == Verdict.BROKEN}
    rows = Case.objects.filter(pk__in=cases).order_by("label").values_list("key", "label")
    return BrokenCommit(
        commit=card.contender,
        keys=tuple(key for key, _ in rows),
        labels=tuple(label for _, label in rows),
    )


def _raise_alert(run: Run, broken: Sequence[BrokenCommit], now: datetime) -> None:
    """Raise an alert for the first of the commits, or add all to the open alert of the branch."""
    with transaction.atomic():
        # One at a time: two would raise the same alert.
        Team.objects.select_for_update(no_key=True).get(pk=run.team_id)
        if run.alerts.exists():
            return
        alert = _find_open_alert(run)
        for each in broken:
            if alert is None:
                alert = _build_alert(run, each, now)
            else:
                log_action(alert, each.summary, at=now)
            alert.broken_cases = sorted({*alert.broken_cases, *each.keys})
        if alert is not None:
            alert.save()
            alert.runs.add(run)


def _find_open_alert(run: Run) -> Alert | None:
    assert run.schedule is not None, "as selected"
    known = Alert.objects.filter(
        kind=AlertKind.BROKEN, benchmark=run.definition.benchmark, branch=run.schedule.branch
    )
    return known.exclude(state__in=ALERT_ENDED).select_for_update().order_by("pk").first()


def _build_alert(run: Run, broken: BrokenCommit, now: datetime) -> Alert:
    assert run.schedule is not None, "as selected"
    return Alert(
        team_id=run.team_id,
        kind=AlertKind.BROKEN,
        benchmark=run.definition.benchmark,
        branch=run.schedule.branch,
        confirmed=True,
        commit=broken.commit,
        summary=broken.summary,
        raised_at=now,
        changed_at=now,
    )


def _find_repair(alert: Alert) -> Commit | None:
    """Return the first later commit in which all cases of the alert work."""
    newest = alert.runs.aggregate(at=Max("created_at"))["at"] or alert.raised_at
    later = _load_branch_runs().filter(
        definition__benchmark=alert.benchmark_id,
        schedule__branch=alert.branch,
        created_at__gt=newest,
    )
    for run in reversed(list(later.order_by("-created_at")[:AT_ONCE])):
        for variant in list(run.variants.all())[1:]:
            if _works(run, variant.commit, alert.broken_cases):
                return variant.commit
    return None


def _works(run: Run, commit: Commit, keys: Sequence[str]) -> bool:
    """Return whether the run measured the commit in all these cases, and no trial of them
    failed."""
    rows = Trial.objects.filter(job__run=run, variant__commit=commit, case__key__in=keys)
    ended = rows.filter(state__in=[TrialState.MEASURED, TrialState.FAILED])
    outcomes: dict[str, set[Outcome]] = {}
    for key, state, validity, reasons in ended.values_list(
        "case__key", "state", "validity", "reasons"
    ):
        outcomes.setdefault(key, set()).add(classify_trial(state, validity, reasons))
    return bool(keys) and all(_has_worked(outcomes.get(key, ())) for key in keys)


def _has_worked(outcomes: Iterable[Outcome]) -> bool:
    known = set(outcomes)
    return Outcome.COUNTS in known and Outcome.BROKEN not in known
