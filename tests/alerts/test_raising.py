"""When a team is told of a regression, and what people do about it."""

from pathlib import Path

import pytest

from orchestrator.alerts import raising
from orchestrator.alerts.models import Alert
from orchestrator.alerts.selectors import alert_for, alerts_of, counts_of, open_alerts
from orchestrator.alerts.services import acknowledge, assign, dismiss_alert, reopen, resolve
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionRefusedError,
)
from orchestrator.results.changes import duels
from orchestrator.results.models import ChangePoint
from tests.support.changes import Line, make_line
from tests.support.factories import Personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def line(personas: Personas, tmp_path: Path) -> Line:
    return make_line(personas.alice, tmp_path / "origin", cases=2)


def suspect(line: Line, change: float = -0.08, **more: object) -> None:
    for case in (0, 1):
        line.step(until=40, at=25, change=change, case=case, seed=case, **more)
    line.look()


def have_duels(line: Line, change: float = -0.08) -> None:
    duels.tick(utc_now())
    rates = {c.sha: 1000 * (1 + change if n >= 25 else 1) for n, c in enumerate(line.commits)}
    line.answer_duels(rates)
    duels.tick(utc_now())


def raised(line: Line) -> Alert:
    suspect(line)
    have_duels(line)
    raising.tick(utc_now())
    return Alert.objects.get()


def test_nobody_is_told_before_a_duel_has_confirmed_it(line: Line) -> None:
    suspect(line)
    raising.tick(utc_now())
    assert not Alert.objects.exists()
    have_duels(line)
    raising.tick(utc_now())
    raising.tick(utc_now())
    alert = Alert.objects.get()
    assert (alert.state, alert.confirmed) == ("open", True)
    assert alert.change_points.count() == 2
    assert open_alerts(line.project.team) == 1


def test_a_refuted_one_and_an_improvement_raise_none(line: Line) -> None:
    suspect(line)
    have_duels(line, 0.0)
    raising.tick(utc_now())
    assert not Alert.objects.exists()


def test_an_improvement_raises_none(line: Line) -> None:
    suspect(line, 0.08)
    have_duels(line, 0.08)
    raising.tick(utc_now())
    assert set(ChangePoint.objects.values_list("state", flat=True)) == {"confirmed"}
    assert not Alert.objects.exists()


def test_what_was_measured_elsewhere_raises_one_that_says_so(
    personas: Personas, tmp_path: Path
) -> None:
    line = make_line(personas.alice, tmp_path / "origin", cases=2, external=True)
    suspect(line)
    raising.tick(utc_now())
    alert = Alert.objects.get()
    assert not alert.confirmed
    assert alert.change_point.message == "not confirmed: measured elsewhere"


def test_somebody_takes_it_over_and_resolves_it(line: Line) -> None:
    alert = raised(line)
    alert = acknowledge(member=line.member, alert_id=alert.pk, note="on it")
    assert (alert.state, alert.assignee) == ("acknowledged", line.member.user)
    with pytest.raises(ConflictError):
        acknowledge(member=line.member, alert_id=alert.pk)
    with pytest.raises(InvalidRequestError, match="say why"):
        resolve(member=line.member, alert_id=alert.pk, note="")
    alert = resolve(member=line.member, alert_id=alert.pk, note="reverted")
    assert counts_of(line.member) == {
        "open": 0, "acknowledged": 0, "resolved": 1, "dismissed": 0,
    }  # fmt: skip
    assert reopen(member=line.member, alert_id=alert.pk).state == "open"
    alert = assign(member=line.member, alert_id=alert.pk, username="bob")
    assert alert.assignee is not None
    with pytest.raises(InvalidRequestError, match="no member"):
        assign(member=line.member, alert_id=alert.pk, username="mallory")


def test_dismissing_it_dismisses_its_change_points(line: Line) -> None:
    alert = raised(line)
    dismiss_alert(member=line.member, alert_id=alert.pk, reason="meant so")
    assert set(ChangePoint.objects.values_list("state", flat=True)) == {"dismissed"}
    raising.tick(utc_now())
    assert Alert.objects.get().state == "dismissed"


def test_one_of_which_nothing_is_left_ends_by_itself(line: Line) -> None:
    raised(line)
    ChangePoint.objects.update(state="refuted")
    raising.tick(utc_now())
    assert Alert.objects.get().state == "resolved"


def test_strangers_see_none_and_viewers_change_none(line: Line, personas: Personas) -> None:
    alert = raised(line)
    assert list(alerts_of(personas.bob)) == [alert]
    assert list(alerts_of(personas.mallory)) == []
    with pytest.raises(NotFoundError):
        alert_for(personas.mallory, alert.pk)
    with pytest.raises(PermissionRefusedError):
        acknowledge(member=personas.bob, alert_id=alert.pk)
