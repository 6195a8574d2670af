"""Runs are started, listed, shown and cancelled; each as owner, viewer and stranger."""

from uuid import uuid4

import pytest

from orchestrator.runs.models import Run, Trial, Trigger
from orchestrator.runs.states import RunState
from tests.support.factories import DEFINITION, make_definition
from tests.support.trials import ERRORS, invalidate

UNKNOWN = "0190a000-0000-7000-8000-000000000000"


def test_a_run_is_started(world, alice, settings):
    answer = alice.post("runs", world.run_body(rounds=2))
    run = Run.objects.get()
    shown = answer.json()
    assert answer.status_code == 201
    assert answer["Location"] == shown["url"] == f"/api/v1/runs/{run.pk}"
    assert shown["web_url"] == f"{settings.BASE_URL}/runs/{run.pk}/"
    assert run.trigger == Trigger.API
    assert (shown["id"], shown["state"], shown["phase"]) == (str(run.pk), "queued", "queued")
    assert (shown["benchmark"], shown["project"]) == ("hello", "server")
    assert (shown["rounds"], shown["definition_version"]) == (2, 1)
    assert shown["priority"] == "normal"
    assert (shown["trials_total"], shown["trials_done"]) == (4, 0)
    assert shown["seconds_left"] > 0
    assert shown["started_at"] is None
    assert shown["ended_at"] is None
    assert shown["baseline"] == {
        "commit": world.shas[0],
        "short": world.shas[0][:10],
        "subject": "version 1",
    }
    assert [each["commit"] for each in shown["contenders"]] == [world.shas[1]]
    job = run.jobs.get()
    assert shown["jobs"] == [
        {
            "id": str(job.pk),
            "host": "here",
            "placements": [{"role": "target", "host_selector": "host:here", "host": None}],
            "state": "queued",
            "phase": "",
            "message": "",
            "attempt": 1,
            "not_before": None,
            "waiting": "in the queue of its hosts",
            "expected_s": job.expected_s,
            "builds": [],
            "trials_total": 4,
            "trials_done": 0,
            "trials_failed": 0,
            "trials_unsupported": 0,
            "trials_not_needed": 0,
            "trials_skipped": 0,
            "cases": [],
            "current_trial": None,
        }
    ]


@pytest.mark.parametrize("more", [{}, {"until": "decided"}])
def test_a_run_is_shown_as_the_start_returned_it(world, alice, more):
    started = alice.post("runs", world.run_body(**more)).json()
    shown = alice.get(f"runs/{started['id']}").json()
    # PostgreSQL adds them up as well, and may round the last digit otherwise.
    left = ["seconds_left", "seconds_left_at_least", "seconds_left_at_most"]
    assert [shown.pop(each) for each in left] == [pytest.approx(started.pop(each)) for each in left]
    assert shown == started


def test_branches_and_a_single_contender_are_accepted(world, alice):
    wanted = world.run_body(baseline="main~2", contender="main")
    del wanted["contenders"]
    shown = alice.post("runs", wanted).json()
    assert shown["baseline"]["commit"] == world.shas[0]
    assert [each["commit"] for each in shown["contenders"]] == [world.shas[2]]


def test_the_current_trial_is_shown(world, alice):
    run = world.queue_run()
    trial = run.jobs.get().trials.first()
    run.jobs.update(current_trial=trial.pk, state="measuring", phase="round 1")
    Run.objects.update(state="running")
    shown = alice.get(f"runs/{run.pk}").json()
    assert shown["phase"] == "round 1"
    assert shown["jobs"][0]["current_trial"] == {
        "id": str(trial.pk),
        "case": trial.case.label,
        "commit": trial.variant.commit.short_sha,
        "round": 1,
    }


def test_a_viewer_reads_but_does_not_start_or_cancel(world, bob):
    run = world.queue_run()
    assert bob.get(f"runs/{run.pk}").status_code == 200
    assert len(bob.get("runs").json()["runs"]) == 1
    for answer in (bob.post("runs", world.run_body()), bob.post(f"runs/{run.pk}/cancel")):
        assert answer.status_code == 403
        assert "viewer" in answer.json()["detail"]
    assert Run.objects.get().state == RunState.QUEUED


def test_a_stranger_finds_nothing(world, mallory):
    run = world.queue_run()
    assert mallory.get(f"runs/{run.pk}").status_code == 404
    assert mallory.get(f"runs/{run.pk}", wait=5).status_code == 404
    assert mallory.get(f"runs/{run.pk}/trials").status_code == 404
    assert mallory.post(f"runs/{run.pk}/cancel").status_code == 404
    assert mallory.post("runs", world.run_body()).status_code == 404
    assert mallory.get("runs").json() == {"runs": [], "next": None}
    assert Run.objects.get().cancel_requested_at is None


def test_an_unknown_run_is_not_found(alice):
    assert alice.get(f"runs/{UNKNOWN}").status_code == 404


def test_a_queued_run_is_cancelled_once(world, alice):
    run = world.queue_run()
    answer = alice.post(f"runs/{run.pk}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    assert answer.json()["jobs"][0]["state"] == "cancelled"
    again = alice.post(f"runs/{run.pk}/cancel")
    assert again.status_code == 409
    assert "already ended" in again.json()["detail"]


def test_runs_are_listed_newest_first_in_pages(world, alice):
    made = [str(world.queue_run().pk) for _ in range(5)]
    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        page = alice.get("runs", limit=2, **({"cursor": cursor} if cursor else {})).json()
        seen += [run["id"] for run in page["runs"]]
        cursor, pages = page["next"], pages + 1
    assert (seen, pages) == (sorted(made, reverse=True), 3)


def test_a_full_last_page_has_no_next_page(world, alice):
    world.queue_run(), world.queue_run()
    assert alice.get("runs", limit=2).json()["next"] is None


def test_runs_are_filtered(world, alice):
    queued, measured = world.queue_run(), world.measure_run(100, 100)

    def ids(**query):
        return {run["id"] for run in alice.get("runs", **query).json()["runs"]}

    assert ids(state="queued") == {str(queued.pk)}
    assert ids(state="finished") == {str(measured.pk)}
    assert ids(benchmark="hello", project="server") == {str(queued.pk), str(measured.pk)}
    assert ids(benchmark="other") == ids(project="other") == set()


def test_trials_of_a_run_are_listed(world, alice):
    run = world.measure_run(100, 100)
    world.queue_run()
    page = alice.get(f"runs/{run.pk}/trials", limit=4).json()
    rest = alice.get(f"runs/{run.pk}/trials", cursor=page["next"]).json()
    trials = page["trials"] + rest["trials"]
    assert len({trial["id"] for trial in trials}) == 10
    assert {trial["run"] for trial in trials} == {str(run.pk)}
    assert {(trial["state"], trial["validity"]) for trial in trials} == {("measured", "valid")}


def test_trials_have_the_metrics_that_decide(world, alice):
    run = world.measure_run(100, 100)
    queued = world.queue_run()
    trials = alice.get(f"runs/{run.pk}/trials", limit=100).json()["trials"]
    planned = alice.get(f"runs/{queued.pk}/trials").json()["trials"]
    keys = {"requests.rate", "latency.p50", "cpu.seconds_per_1k"}
    assert {frozenset(trial["primary"]) for trial in trials} == {frozenset(keys)}
    assert {round(trial["primary"]["requests.rate"]) for trial in trials} == {100}
    assert [trial["primary"] for trial in planned] == [{}] * 10
    shown = alice.get(f"trials/{trials[0]['id']}").json()
    assert shown["primary"] == trials[0]["primary"]


def test_a_server_without_long_polls_responds_immediately(world, alice):
    """Django's own, as here. tests/serving waits by the one that is deployed."""
    run = world.queue_run()
    answer = alice.get(f"runs/{run.pk}", wait=60)
    assert (answer.json()["state"], answer.headers["Retry-After"]) == ("queued", "5")


@pytest.mark.parametrize("wait", [-1, 61, "long"])
def test_a_long_poll_of_more_than_a_minute_is_refused(world, alice, wait):
    answer = alice.get(f"runs/{uuid4()}", wait=wait)
    assert (answer.status_code, answer.json()["field"]) == (422, "wait")


def test_a_run_is_started_without_a_wait_for_quiet_hosts(world, alice):
    answer = alice.post("runs", {**world.run_body(), "wait_for_quiet": False})
    assert (answer.status_code, answer.json()["wait_for_quiet"]) == (201, False)
    assert Run.objects.get().wait_for_quiet is False


def test_only_members_end_the_wait_for_quiet_hosts(world, alice, bob, mallory):
    alice.post("runs", world.run_body())
    run = Run.objects.get()
    assert run.wait_for_quiet is True
    path = f"runs/{run.pk}/measure-now"
    assert [each.post(path).status_code for each in (bob, mallory)] == [403, 404]
    answer = alice.post(path)
    assert (answer.status_code, answer.json()["wait_for_quiet"]) == (200, False)
    alice.post(f"runs/{run.pk}/cancel")
    assert alice.post(path).status_code == 409


def test_a_run_with_only_invalid_trials_is_not_finished(world, alice):
    run = invalidate(world.measure_run(100, 100), ERRORS)
    shown = alice.get(f"runs/{run.pk}").json()
    assert (shown["state"], shown["jobs"][0]["state"]) == ("no_data", "no_data")
    assert "all 10 trials are invalid: Answers of another status" in shown["message"]
    assert alice.get("runs", state="finished").json()["runs"] == []
    listed = alice.get("runs", state="no_data").json()["runs"]
    assert [each["id"] for each in listed] == [str(run.pk)]


def test_trials_are_filtered_by_state_and_validity(world, alice):
    run = world.measure_run(100, 100)
    first, second, *_ = Trial.objects.filter(job__run=run).order_by("position")
    Trial.objects.filter(pk=first.pk).update(state="failed", validity="")
    Trial.objects.filter(pk=second.pk).update(validity="invalid")

    def ids(**query):
        page = alice.get(f"runs/{run.pk}/trials", limit=100, **query).json()
        return [each["id"] for each in page["trials"]], page["invalid_excluded"]

    assert ids(state="failed") == ([str(first.pk)], 0)
    assert ids(validity="invalid") == ([str(second.pk)], 0)
    assert ids(state="failed", validity="invalid") == ([], 0)
    assert (len(ids(state="measured")[0]), ids(state="measured")[1]) == (8, 1)


def test_the_queue_before_a_run_is_part_of_its_estimate(world, alice):
    first, second = world.queue_run(), world.queue_run()
    shown = [alice.get(f"runs/{run.pk}").json() for run in (first, second)]
    starts = [each["seconds_until_start"] for each in shown]
    assert starts == [0, pytest.approx(shown[0]["seconds_left"])]
    ended = world.measure_run(100, 100)
    assert alice.get(f"runs/{ended.pk}").json()["seconds_until_start"] is None


def test_a_run_shows_the_commits_of_other_repositories(world, alice):
    world.add_project("framework")
    source = f"{DEFINITION}repositories: {{framework: {{project: framework, ref: main}}}}\n"
    make_definition(world.alice, world.project, source=source)
    pinned = {"name": "framework", "project": "framework", "ref": "main", "sha": world.shas[2]}
    assert alice.post("runs/plan", world.run_body()).json()["repositories"] == [pinned]
    assert alice.post("runs", world.run_body()).json()["repositories"] == [pinned]


def test_a_run_builds_its_commits_several_times(world, alice):
    source = DEFINITION.replace("subject:\n", "subject:\n  build: [[make]]\n")
    make_definition(world.alice, world.project, source=source)
    body = world.run_body(rounds=10)
    assert alice.post("runs", body).json()["builds"] == 1
    assert alice.post("runs", {**body, "builds": 5}).json()["builds"] == 5
    assert alice.post("runs/plan", {**body, "builds": 5}).json()["builds"] == 5
    refused = alice.post("runs", {**body, "rounds": 5, "builds": 5})
    assert (refused.status_code, refused.json()["field"]) == (422, "builds")
    assert "two rounds each" in refused.json()["detail"]
    assert alice.post("runs", {**body, "builds": 11}).status_code == 422
