"""A commit of a watched branch that fails raises an alert, until a later one works."""

from pathlib import Path

import pytest
from django.urls import reverse

from orchestrator.alerts import alert_rules, events
from orchestrator.alerts.models import Alert, Channel, Event
from orchestrator.alerts.selectors import count_open_alerts, load_alert
from orchestrator.alerts.services import accept, acknowledge, resolve
from orchestrator.api.schemas.changes import build_alert_out
from orchestrator.comparisons.verdict_cache import store_missing_verdicts
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError, NotFoundError
from orchestrator.dispatch.background_tasks import claim_schedules
from orchestrator.retention.deletions import list_benchmark_dependents
from orchestrator.runs.models import Run, Schedule
from orchestrator.runs.schedules import NewSchedule, create_schedule
from tests.support.factories import commit_files, finish_run
from tests.support.fetches import fetch_now, run_fetches
from tests.support.html_pages import element, elements, get_text, values
from tests.support.trials import DIED, invalidate
from tests.support.world import World
from tests.web.conftest import signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def watched(world: World) -> World:
    new = NewSchedule(name="each", branch="main", benchmark="hello", hosts=("here",))
    create_schedule(member=world.alice, new=new)
    look(world)
    return world


def look(world: World) -> None:
    """Let the schedule look for new commits now."""
    for _ in range(2):
        Schedule.objects.update(next_at=utc_now())
        claim_schedules()
        run_fetches()


def push(world: World, number: int) -> Run:
    """Push a commit. Return the run that the schedule starts for it, against its parent."""
    sha = commit_files(world.repository, {"file.txt": f"{number}\n"}, number)
    fetch_now(world.project)
    look(world)
    run = Run.objects.filter(trigger="schedule").latest("created_at")
    assert run.variants.get(position=1).commit.sha == sha
    return run


def end(run: Run, *broken: int) -> Run:
    """End a run. The server dies in all trials of the commits at these positions."""
    finish_run(run, [1000, 1000])
    for position in broken:
        invalidate(run, DIED, variant__position=position)
    store_missing_verdicts()
    alert_rules.apply_alert_rules(utc_now())
    return run


def test_a_broken_commit_raises_an_alert_until_a_later_one_works(watched: World) -> None:
    alice = signed_in(watched.alice)
    assert not end(push(watched, 10)).alerts.exists()
    run = end(push(watched, 11), 1)
    alert = Alert.objects.get()
    broken = run.variants.get(position=1).commit
    assert (alert.kind, alert.state, alert.branch) == ("broken", "open", "main")
    assert (alert.commit, alert.change_point) == (broken, None)
    assert list(alert.runs.all()) == [run]
    assert alert.summary == (
        f"{broken.short_sha} is broken in connections 4: it fails where the commit before works"
    )
    assert count_open_alerts(watched.project.team) == 1
    counts = {each.title: each.count for each in list_benchmark_dependents(watched.benchmark)}
    assert counts["Open alerts"] == 1

    page = alice.get(reverse("alert", args=[alert.pk]))
    assert get_text(element(page, "h1")) == "Hello: broken commit"
    assert get_text(element(page, ".verdict-line")) == f"{alert.summary}."
    facts = get_text(element(page, "dl.facts"))
    assert f"Commit version 11 {broken.short_sha} by Ada Branch main Broken cases" in facts
    assert reverse("run", args=[run.pk]) in values(page, "dl.facts a", "href")
    buttons = [each["value"] for each in elements(page, ".triage-row .actions button")]
    assert buttons == ["acknowledge", "confirm", "resolve", "dismiss", "note"]
    assert "broken commit" in alice.get(reverse("alerts")).content.decode()
    assert "Hello: broken commit" in alice.get(reverse("overview")).content.decode()
    document = build_alert_out(load_alert(watched.personas.bob, alert.pk))
    assert (document.kind, document.branch, document.runs) == ("broken", "main", [run.pk])
    assert document.commit is not None
    assert document.commit.commit == broken.sha
    assert document.broken_cases == ["connections 4"]
    with pytest.raises(NotFoundError):
        load_alert(watched.personas.mallory, alert.pk)

    # The next commit is broken as well, like its parent: it is inconclusive, and nothing is fixed.
    end(push(watched, 12), 0, 1)
    assert Alert.objects.get().state == "open"

    acknowledge(member=watched.alice, alert_id=alert.pk, note="on it")
    fixed = end(push(watched, 13), 0)
    alert.refresh_from_db()
    assert (alert.state, alert.fixed_by) == ("resolved", fixed.variants.get(position=1).commit)
    assert alert.log[-1]["text"].endswith("version 13 works again")
    end(push(watched, 14))
    assert Alert.objects.count() == 1


def test_commits_that_no_branch_brings_raise_no_alert(world: World) -> None:
    end(world.queue_run(0, 1), 1)
    assert not Alert.objects.exists()


def test_a_broken_commit_has_no_new_baseline(watched: World) -> None:
    end(push(watched, 10), 1)
    alert = Alert.objects.get()
    with pytest.raises(ConflictError, match="resolve or dismiss"):
        accept(member=watched.alice, alert_id=alert.pk, reason="fine")
    resolve(member=watched.alice, alert_id=alert.pk, note="reverted")
    alert_rules.apply_alert_rules(utc_now())
    assert [each.state for each in Alert.objects.all()] == ["resolved"]


def test_channels_are_notified_of_a_broken_commit(watched: World, tmp_path: Path) -> None:
    Channel.objects.create(
        team=watched.project.team, name="mail", kind="email", target="a@example.org",
        addresses=["a@example.org"], events=["alert.raised"], created_at=utc_now(),
    )  # fmt: skip
    run = end(push(watched, 10), 1)
    events.record_events(utc_now())
    event = Event.objects.get()
    assert event.data["title"] == "Hello: alert"
    assert "is broken in connections 4" in event.data["text"]
    assert event.data["alert"]["kind"] == "broken"
    assert event.data["alert"]["commit"] == run.variants.get(position=1).commit.sha
    assert event.data["alert"]["change"] is None
