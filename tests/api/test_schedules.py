"""Schedules are made, changed, switched and deleted; each as owner, viewer and stranger."""

import pytest

from orchestrator.runs.models import Schedule
from orchestrator.runs.schedules import build_request
from tests.support.factories import DEFINITION, make_definition


def build_schedule_body(**changes):
    given = {
        "name": "nightly", "cron": "0 3 * * *", "benchmark": "hello", "baseline": "main~1",
        "contender": "main", "hosts": ["here"],
    }  # fmt: skip
    return {name: value for name, value in {**given, **changes}.items() if value is not None}


def test_a_schedule_is_created_shown_changed_and_deleted(world, alice):
    answer = alice.post("schedules", build_schedule_body(placements=[{"target": "profile:any"}]))
    made = answer.json()
    assert (answer.status_code, answer["Location"]) == (201, made["url"])
    assert (made["enabled"], made["hosts"], made["baseline"]) == (True, ["here"], "main~1")
    path = f"schedules/{made['id']}"
    assert alice.get(path).json() == alice.get("schedules").json()["schedules"][0] == made

    branch = build_schedule_body(cron=None, contender=None, branch="main", name="each", rounds=7)
    changed = alice.put(path, branch).json()
    assert (changed["branch"], changed["cron"], changed["rounds"]) == ("main", None, 7)
    assert changed["placements"] == []
    assert Schedule.objects.get().seen_sha == world.shas[-1]

    assert alice.patch(path, {"enabled": False}).json()["enabled"] is False
    assert alice.delete(path).status_code == 204
    assert alice.get(path).status_code == 404


def test_changing_a_schedule_loses_no_new_commits(world, alice):
    branch = build_schedule_body(cron=None, contender=None, branch="main")
    made = alice.post("schedules", branch).json()
    Schedule.objects.update(seen_sha=world.shas[0])
    alice.put(f"schedules/{made['id']}", {**branch, "rounds": 9})
    assert Schedule.objects.get().seen_sha == world.shas[0]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cron": "never"}, "cron"),
        ({"cron": None}, None),
        ({"branch": "main"}, None),
        ({"hosts": ["nowhere"]}, "hosts"),
        ({"contender": "nosuchbranch"}, "contenders"),
        ({"resolution": 0.02}, "resolution"),
        ({"resolution": 0.02, "rounds": 5}, None),
    ],
)
def test_an_invalid_schedule_is_refused_with_the_field(alice, changes, field):
    made = alice.post("schedules", build_schedule_body()).json()
    path = f"schedules/{made['id']}"
    for answer in (alice.post("schedules", build_schedule_body(**{"name": "x", **changes})),
                   alice.put(path, build_schedule_body(**changes))):  # fmt: skip
        assert (answer.status_code, answer.json().get("field")) == (422, field)
    assert alice.get(path).json()["cron"] == "0 3 * * *"
    assert alice.post("schedules", build_schedule_body()).status_code == 409


def test_viewers_and_strangers_cannot_change_schedules(alice, bob, mallory):
    path = f"schedules/{alice.post('schedules', build_schedule_body()).json()['id']}"
    assert len(bob.get("schedules").json()["schedules"]) == 1
    assert mallory.get("schedules").json()["schedules"] == []
    for client, status in ((bob, 403), (mallory, 404)):
        assert client.put(path, build_schedule_body()).status_code == status
        assert client.patch(path, {"enabled": False}).status_code == status
        assert client.delete(path).status_code == status
    assert bob.post("schedules", build_schedule_body(name="other")).status_code == 403
    assert Schedule.objects.get().enabled


def test_a_schedule_follows_tags(world, alice):
    made = alice.post("schedules", build_schedule_body(cron=None, contender=None, tags="v*")).json()
    assert (made["tags"], made["branch"], made["cron"]) == ("v*", None, None)
    path = f"schedules/{made['id']}"
    assert alice.get(path).json() == made
    for changes in ({"branch": "main"}, {"contender": "main"}, {"tags": ""}):
        body = build_schedule_body(cron=None, contender=None, tags="v*", name="other")
        assert alice.post("schedules", {**body, **changes}).status_code == 422


def test_a_schedule_builds_its_commits_several_times(world, alice):
    source = DEFINITION.replace("subject:\n", "subject:\n  build: [[make]]\n")
    make_definition(world.alice, world.project, source=source)
    refused = alice.post("schedules", build_schedule_body(rounds=5, builds=5))
    assert (refused.status_code, refused.json()["field"]) == (422, "builds")
    made = alice.post("schedules", build_schedule_body(rounds=10, builds=5)).json()
    assert made["builds"] == 5
    assert build_request(Schedule.objects.get()).builds == 5
    changed = alice.put(f"schedules/{made['id']}", build_schedule_body()).json()
    assert changed["builds"] is None
