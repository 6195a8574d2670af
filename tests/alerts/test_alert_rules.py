"""When a regression raises an alert, and how members change its state."""

from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator.alerts import alert_rules
from orchestrator.alerts.models import Alert
from orchestrator.alerts.recovery import find_fix
from orchestrator.alerts.selectors import count_alerts, count_open_alerts, load_alert, load_alerts
from orchestrator.alerts.services import (
    accept,
    acknowledge,
    assign,
    dismiss_alert,
    reopen,
    resolve,
    silence,
)
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionRefusedError,
)
from orchestrator.regressions import confirmations
from orchestrator.results.models import Baseline, ChangePoint
from orchestrator.retention.deletions import (
    delete_benchmark,
    list_benchmark_dependents,
    restore_benchmark,
)
from orchestrator.runs.models import Run
from tests.support.commit_lines import Line, make_line
from tests.support.factories import Personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def line(personas: Personas, tmp_path: Path) -> Line:
    return make_line(personas.alice, tmp_path / "origin", cases=2)


def suspect(line: Line, change: float = -0.08, **more: object) -> None:
    for case in (0, 1):
        line.step(until=40, at=25, change=change, case=case, seed=case, **more)
    line.detect()


def confirm_changes(line: Line, change: float = -0.08) -> None:
    confirmations.advance_confirmations(utc_now())
    rates = {c.sha: 1000 * (1 + change if n >= 25 else 1) for n, c in enumerate(line.commits)}
    line.answer_confirmation_runs(rates)
    confirmations.advance_confirmations(utc_now())


def raised(line: Line) -> Alert:
    suspect(line)
    confirm_changes(line)
    alert_rules.apply_alert_rules(utc_now())
    return Alert.objects.get()


def test_no_alert_is_raised_before_a_confirmation_run_confirms(line: Line) -> None:
    suspect(line)
    alert_rules.apply_alert_rules(utc_now())
    assert not Alert.objects.exists()
    confirm_changes(line)
    alert_rules.apply_alert_rules(utc_now())
    alert_rules.apply_alert_rules(utc_now())
    alert = Alert.objects.get()
    assert (alert.state, alert.confirmed) == ("open", True)
    assert alert.change_points.count() == 2
    assert count_open_alerts(line.project.team) == 1


def test_a_deleted_benchmark_raises_no_alert_and_hides_those_it_has(line: Line) -> None:
    suspect(line)
    benchmark, member = line.benchmark, line.member
    delete_benchmark(member=member, project=benchmark.project.slug, slug=benchmark.slug)
    confirmations.advance_confirmations(utc_now())
    assert not Run.objects.filter(trigger="confirmation").exists()
    restore_benchmark(member=member, benchmark_id=benchmark.pk)
    confirm_changes(line)
    alert_rules.apply_alert_rules(utc_now())
    titles = [each.title for each in list_benchmark_dependents(benchmark)]
    assert "Open alerts" in titles
    delete_benchmark(member=member, project=benchmark.project.slug, slug=benchmark.slug)
    assert Alert.objects.exists()
    assert count_open_alerts(member.team) == load_alerts(member).count() == 0


def test_a_refuted_change_and_an_improvement_raise_no_alert(line: Line) -> None:
    suspect(line)
    confirm_changes(line, 0.0)
    alert_rules.apply_alert_rules(utc_now())
    assert not Alert.objects.exists()


def test_an_improvement_raises_no_alert(line: Line) -> None:
    suspect(line, 0.08)
    confirm_changes(line, 0.08)
    alert_rules.apply_alert_rules(utc_now())
    assert set(ChangePoint.objects.values_list("state", flat=True)) == {"confirmed"}
    assert not Alert.objects.exists()


def test_an_imported_result_raises_an_alert_that_says_so(
    personas: Personas, tmp_path: Path
) -> None:
    line = make_line(personas.alice, tmp_path / "origin", cases=2, external=True)
    suspect(line)
    alert_rules.apply_alert_rules(utc_now())
    alert = Alert.objects.get()
    assert not alert.confirmed
    assert alert.change_point.message == "not confirmed: measured on an external host"


def test_an_alert_is_acknowledged_and_resolved(line: Line) -> None:
    alert = raised(line)
    alert = acknowledge(member=line.member, alert_id=alert.pk, note="on it")
    assert (alert.state, alert.assignee) == ("acknowledged", line.member.user)
    with pytest.raises(ConflictError):
        acknowledge(member=line.member, alert_id=alert.pk)
    with pytest.raises(InvalidRequestError, match="enter the reason"):
        resolve(member=line.member, alert_id=alert.pk, note="")
    alert = resolve(member=line.member, alert_id=alert.pk, note="reverted")
    counts = count_alerts(line.member)
    assert (counts["resolved"], sum(counts.values())) == (1, 1)
    assert sum(count_alerts(line.member, owner="nobody").values()) == 0
    assert reopen(member=line.member, alert_id=alert.pk).state == "open"
    alert = assign(member=line.member, alert_id=alert.pk, username="bob")
    assert alert.assignee is not None
    with pytest.raises(InvalidRequestError, match="no member"):
        assign(member=line.member, alert_id=alert.pk, username="mallory")


def test_a_silenced_alert_opens_again(line: Line) -> None:
    alert, now = raised(line), utc_now()
    for days, message in ((-1, "a day in the future"), (900, "at most 366 days")):
        with pytest.raises(InvalidRequestError, match=message):
            silence(member=line.member, alert_id=alert.pk, until=now + timedelta(days=days))
    silence(member=line.member, alert_id=alert.pk, until=now + timedelta(days=3), note="holiday")
    alert_rules.apply_alert_rules(now + timedelta(days=2))
    assert Alert.objects.get().state == "silenced"
    alert_rules.apply_alert_rules(now + timedelta(days=4))
    woken = Alert.objects.get()
    assert (woken.state, woken.silenced_until, woken.note) == ("open", None, "holiday")
    assert [each["by"] for each in woken.log] == ["alice", ""]


def test_accepting_an_alert_sets_a_new_baseline(line: Line) -> None:
    alert = raised(line)
    accept(member=line.member, alert_id=alert.pk, reason="safer")
    assert Alert.objects.get().state == "accepted"
    begun = Baseline.objects.values_list("series", "commit__position", "reason")
    assert sorted(begun) == [(line.series(case).pk, 25, "safer") for case in (0, 1)]
    line.detect()
    alert_rules.apply_alert_rules(utc_now())
    assert Alert.objects.get().state == "accepted"


def test_an_alert_that_a_later_commit_fixed_resolves_after_confirmation(line: Line) -> None:
    alert = raised(line)
    assert find_fix(alert) is None
    levels = dict.fromkeys(range(40, 55), 1000.0)
    line.measure(levels, case=0, seed=5)
    line.detect()
    alert_rules.apply_alert_rules(utc_now())
    assert find_fix(alert) is None, "the other case is as slow as before"
    line.measure(levels, case=1, seed=6)
    line.detect()
    alert_rules.apply_alert_rules(utc_now())
    fix = find_fix(alert)
    assert fix is not None
    assert (fix.commit.position, fix.sure, Alert.objects.get().state) == (40, False, "open")
    assert abs(fix.left) < 0.02

    for _ in range(3):
        confirmations.advance_confirmations(utc_now())
        rates = {c.sha: 920 if 25 <= n < 40 else 1000 for n, c in enumerate(line.commits)}
        line.answer_confirmation_runs(rates)
    confirmations.advance_confirmations(utc_now())
    alert_rules.apply_alert_rules(utc_now())
    ended = Alert.objects.get()
    assert (ended.state, ended.fixed_by) == ("resolved", line.commits[40])
    assert "fixed by" in ended.note
    reopen(member=line.member, alert_id=alert.pk)
    alert_rules.apply_alert_rules(utc_now())
    assert Alert.objects.get().state == "open"


def test_a_partial_recovery_does_not_resolve_an_alert(line: Line) -> None:
    alert = raised(line)
    for case in (0, 1):
        line.measure(dict.fromkeys(range(40, 55), 960.0), case=case, seed=5 + case)
    line.detect()
    assert ChangePoint.objects.filter(regressed=False).count() == 2
    assert find_fix(alert) is None


def test_dismissing_an_alert_dismisses_its_change_points(line: Line) -> None:
    alert = raised(line)
    dismiss_alert(member=line.member, alert_id=alert.pk, reason="meant so")
    assert set(ChangePoint.objects.values_list("state", flat=True)) == {"dismissed"}
    alert_rules.apply_alert_rules(utc_now())
    assert Alert.objects.get().state == "dismissed"


def test_an_alert_without_change_points_resolves(line: Line) -> None:
    raised(line)
    ChangePoint.objects.update(state="refuted")
    alert_rules.apply_alert_rules(utc_now())
    assert Alert.objects.get().state == "resolved"


def test_strangers_see_no_alerts_and_viewers_change_none(line: Line, personas: Personas) -> None:
    alert = raised(line)
    assert list(load_alerts(personas.bob)) == [alert]
    assert list(load_alerts(personas.mallory)) == []
    with pytest.raises(NotFoundError):
        load_alert(personas.mallory, alert.pk)
    with pytest.raises(PermissionRefusedError):
        acknowledge(member=personas.bob, alert_id=alert.pk)
