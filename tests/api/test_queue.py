"""The queue in the API."""

from tests.api.conftest import ApiClient
from tests.support.queues import fill_queue
from tests.support.world import World


def test_the_queue_is_listed_in_pages(world: World, alice: ApiClient, mallory: ApiClient) -> None:
    jobs = fill_queue(world)
    first = alice.get("queue?limit=3").json()
    assert [each["job"] for each in first["jobs"]] == [str(job.pk) for job in jobs[:3]]
    assert first["jobs"][0]["hosts"] == {"target": "host:here"}
    assert first["jobs"][0]["waiting"] == "here is busy with another job"
    assert first["jobs"][0]["expected_start_at"]
    assert first["jobs"][2]["expected_start_at"] is None
    assert first["jobs"][2]["no_forecast"]
    rest = alice.get(f"queue?limit=3&cursor={first['next']}").json()
    assert [each["position"] for each in rest["jobs"]] == [4]
    assert rest["next"] is None
    assert mallory.get("queue").json()["jobs"] == []


def test_a_run_sets_how_long_its_jobs_wait(world: World, alice: ApiClient) -> None:
    run = alice.post("runs", {**world.run_body(), "wait_limit_s": 3600}).json()
    assert run["waits_until"] > run["created_at"]
    answer = alice.post("runs", {**world.run_body(), "wait_limit_s": 1})
    assert (answer.status_code, answer.json()["field"]) == (422, "wait_limit_s")
