"""Small confirmed regressions that add up raise one alert."""

from pathlib import Path

import pytest
from django.urls import reverse

from orchestrator.alerts import alert_rules
from orchestrator.alerts.models import Alert
from orchestrator.alerts.selectors import load_alert
from orchestrator.alerts.services import accept, resolve
from orchestrator.api.schemas.changes import build_alert_out
from orchestrator.core.clock import utc_now
from orchestrator.regressions import confirmations
from orchestrator.results.models import Baseline, ChangePoint
from tests.support.commit_lines import Line, build_line
from tests.support.factories import Personas, git, make_local_host, make_project
from tests.support.fetches import fetch_now
from tests.support.html_pages import element, get_text
from tests.web.conftest import signed_in

pytestmark = pytest.mark.django_db

COMMITS = 60
#: Both steps are within the margin of 3 %.
STEP = 0.976


@pytest.fixture
def line(personas: Personas, data_dir: Path, tmp_path: Path) -> Line:
    """All commits are in a real repository, so that tags can name them."""
    versions = [{"file.txt": str(number)} for number in range(COMMITS)]
    project, _ = make_project(personas.alice, tmp_path / "origin", versions)
    host = make_local_host(personas.alice)
    return build_line(personas.alice, project, host, commits=COMMITS)


def tag(line: Line, name: str, place: int) -> None:
    git(Path(line.project.repository_url), "tag", name, line.commits[place].sha)
    fetch_now(line.project)


def level(place: int) -> float:
    return 1000 * STEP ** sum(place >= step for step in (15, 35, 50))


def measure(line: Line, first: int, until: int) -> None:
    """Measure these commits, confirm what is found, and raise what is due."""
    line.measure({place: level(place) for place in range(first, until)}, seed=first)
    line.detect()
    rates = {commit.sha: level(place) for place, commit in enumerate(line.commits)}
    for _ in range(3):
        confirmations.advance_confirmations(utc_now())
        line.answer_confirmation_runs(rates)
    confirmations.advance_confirmations(utc_now())
    alert_rules.apply_alert_rules(utc_now())


def test_small_changes_since_a_release_add_up(line: Line) -> None:
    alice = signed_in(line.member)
    tag(line, "v1.0", 5)
    measure(line, 0, 25)
    (first,) = ChangePoint.objects.all()
    assert (first.state, first.commit) == ("small", line.commits[15])
    assert first.message.startswith("confirmed, but not beyond the margin: −2.4 %")
    assert first.confirmed_blocks is not None
    assert first.confirmed_error == pytest.approx(0.001, abs=0.002)
    assert not Alert.objects.exists(), "one small change is within the margin"

    measure(line, 25, 45)
    alert = Alert.objects.get()
    assert (alert.kind, alert.state, alert.confirmed) == ("small_changes", "open", True)
    assert set(alert.change_points.all()) == set(ChangePoint.objects.filter(state="small"))
    assert alert.total_change == pytest.approx(STEP**2 - 1, abs=0.003)
    assert alert.summary.startswith("2 small changes since v1.0 add up to −4.7 % (−")
    assert alert.summary.endswith("beyond the margin of 3 %")
    page = alice.get(reverse("alert", args=[alert.pk]))
    assert alert.summary in get_text(element(page, ".verdict-line"))
    assert get_text(element(page, "h1")) == "Hello: Requests per second −4.7 %"
    assert "small changes together" in alice.get(reverse("alerts")).content.decode()
    document = build_alert_out(load_alert(line.member, alert.pk))
    assert (document.kind, document.total_change) == ("small_changes", alert.total_change)

    # A third one joins the alert that is still open.
    measure(line, 45, 60)
    alert = Alert.objects.get()
    assert alert.change_points.count() == 3
    assert alert.summary.startswith("3 small changes since v1.0 add up to −7.")

    accept(member=line.member, alert_id=alert.pk, reason="worth it")
    assert Baseline.objects.get().commit == line.commits[50]
    alert_rules.apply_alert_rules(utc_now())
    assert Alert.objects.get().state == "accepted"


def test_changes_before_the_last_release_do_not_count(line: Line) -> None:
    measure(line, 0, 25)
    tag(line, "v1.0", 5)
    tag(line, "v2.0", 20)
    measure(line, 25, 45)
    assert ChangePoint.objects.filter(state="small").count() == 2
    assert not Alert.objects.exists()


def test_without_a_release_they_count_from_the_first_point(line: Line) -> None:
    measure(line, 0, 25)
    measure(line, 25, 45)
    alert = Alert.objects.get()
    assert "since the first point" in alert.summary
    resolve(member=line.member, alert_id=alert.pk, note="a known price")
    measure(line, 45, 60)
    assert Alert.objects.get().state == "resolved", "one new small change is judged alone"
