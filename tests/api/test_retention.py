"""Retention and pins through the API, and what it says of what was removed."""

from datetime import timedelta

import pytest

from orchestrator.core.clock import utc_now
from orchestrator.retention.pruning import prune
from orchestrator.runs.models import Run, Trial

WANTED = {"files_days": 10, "distributions_days": 20}


@pytest.fixture
def old_run(world):
    run = world.measure_run(1000, 800)
    Run.objects.filter(pk=run.pk).update(ended_at=utc_now() - timedelta(days=500))
    run.refresh_from_db()
    return run


def pruned(run):
    prune(run.definition.benchmark.project, utc_now())
    return Trial.objects.filter(job__run=run).order_by("position")[0]


def test_retention_is_shown_and_changed(alice, world):
    shown = alice.get("projects/server/retention")
    assert shown.json() == {
        "files_days": 90,
        "distributions_days": 400,
        "trials_days": None,
        "points_days": None,
        "keep_every": None,
    }
    assert alice.put("projects/server/retention", WANTED).json()["files_days"] == 10
    assert alice.get("projects/server/retention").json()["distributions_days"] == 20
    refused = alice.put("projects/server/retention", {**WANTED, "trials_days": 5})
    assert (refused.status_code, refused.json()["field"]) == (422, "trials_days")


def test_viewers_cannot_change_retention_and_strangers_see_none(bob, mallory, world):
    assert bob.get("projects/server/retention").status_code == 200
    assert bob.put("projects/server/retention", WANTED).status_code == 403
    pin = {"commit": "main", "reason": "x"}
    assert bob.post("projects/server/pins", pin).status_code == 403
    for path in ("retention", "pins", "removals"):
        assert mallory.get(f"projects/server/{path}").status_code == 404
    assert mallory.put("projects/server/retention", WANTED).status_code == 404
    assert mallory.post("projects/server/pins", pin).status_code == 404


def test_pins_are_created_listed_and_removed(alice, world, old_run):
    made = alice.post("projects/server/pins", {"commit": world.shas[0], "reason": "release"})
    assert made.status_code == 201
    assert made.json()["commit"]["commit"] == world.shas[0]
    assert made.json()["pinned_by"] == "alice"
    of_run = alice.post("projects/server/pins", {"run": str(old_run.pk), "reason": "report"})
    assert of_run.json()["run"] == str(old_run.pk)
    again = alice.post("projects/server/pins", {"run": str(old_run.pk), "reason": "report"})
    assert again.status_code == 409
    assert len(alice.get("projects/server/pins").json()["pins"]) == 2
    assert alice.delete(f"projects/server/pins/{made.json()['id']}").status_code == 204
    assert alice.delete(f"projects/server/pins/{made.json()['id']}").status_code == 404
    both = {"run": str(old_run.pk), "commit": "main", "reason": "x"}
    assert alice.post("projects/server/pins", both).status_code == 422


def test_removed_data_is_410_with_a_message(alice, old_run):
    trial = pruned(old_run)
    for path in ("artifacts/tool.json", "histogram", "latency?percentiles=50"):
        answer = alice.get(f"trials/{trial.pk}/{path}")
        assert answer.status_code == 410
        assert "removed after" in answer.json()["detail"]
    shown = alice.get(f"trials/{trial.pk}").json()
    assert shown["artifacts"] == []
    assert [each[:10] for each in shown["removed"]] == ["raw output", "the distri"]
    assert len(shown["measurements"]) == 4
    removals = alice.get("projects/server/removals").json()["removals"]
    assert {(each["kind"], each["rows"]) for each in removals} == {
        ("files", 10),
        ("distributions", 10),
    }


def test_the_latency_of_an_old_commit_can_still_be_read(alice, world, old_run):
    case = Trial.objects.filter(job__run=old_run)[0].case.key
    query = {
        "case": case, "commit": world.shas[0], "benchmark": "hello", "percentiles": "50,99.5"
    }  # fmt: skip
    before = alice.get("latency", **query).json()
    file = alice.get("latency/histogram", **query).content
    pruned(old_run)

    after = alice.get("latency", **query).json()

    assert after["percentiles"] == before["percentiles"]
    assert (after["trials"], after["merged_before"], after["requests"]) == ([], 5, 10_000)
    assert alice.get("latency/histogram", **query).content == file
    assert alice.get("latency", **query, run=str(old_run.pk)).status_code == 410
