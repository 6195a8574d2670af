"""Backfills are estimated, started, shown and cancelled; each as owner, viewer and stranger."""

from orchestrator.runs.models import Run


def build_body(**changes):
    return {"benchmark": "hello", "count": 2, "hosts": ["here"], **changes}


def test_a_backfill_is_estimated_started_shown_and_cancelled(world, alice):
    plan = alice.post("backfills/plan", build_body()).json()
    newest = world.shas[:0:-1]
    assert [commit["commit"] for commit in plan["commits"]] == newest
    assert (plan["trials"], plan["skipped"], plan["ends_at"] is None) == (10, [], False)
    assert not Run.objects.exists()

    answer = alice.post("backfills", build_body())
    made = answer.json()
    assert (answer.status_code, answer["Location"]) == (201, made["url"])
    assert [each["commit"]["commit"] for each in made["runs"]] == newest
    assert {each["state"] for each in made["runs"]} == {"queued"}
    path = f"backfills/{made['id']}"
    assert alice.get(path).json() == made
    assert [each["id"] for each in alice.get("backfills").json()["backfills"]] == [made["id"]]
    run = alice.get(f"runs/{made['runs'][0]['run']}").json()
    assert run["priority"] == "background"

    again = alice.post("backfills", build_body())
    assert again.status_code == 409
    assert "no commit is left" in again.json()["detail"]
    wider = alice.post("backfills", build_body(count=3)).json()
    assert [each["reason"] for each in wider["skipped"]] == ["already in another backfill"] * 2

    cancelled = alice.post(f"{path}/cancel").json()
    assert {each["state"] for each in cancelled["runs"]} == {"cancelled"}


def test_an_impossible_request_is_refused_with_the_field(alice):
    for changes, field in (
        ({"commits": "range"}, "since"),
        ({"branch": "nope"}, "branch"),
        ({"hosts": ["nowhere"]}, "hosts"),
    ):
        answer = alice.post("backfills", build_body(**changes))
        assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_viewers_estimate_and_start_nothing_and_strangers_see_nothing(alice, bob, mallory):
    made = alice.post("backfills", build_body()).json()
    path = f"backfills/{made['id']}"
    assert bob.get(path).status_code == 200
    assert bob.post("backfills/plan", build_body(count=3)).status_code == 200
    assert bob.post("backfills", build_body(count=3)).status_code == 403
    assert bob.post(f"{path}/cancel").status_code == 403
    assert mallory.get(path).status_code == 404
    assert mallory.post(f"{path}/cancel").status_code == 404
