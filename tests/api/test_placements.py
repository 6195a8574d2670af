"""Runs on profiles, tags and several hosts; what waits and why; logs of builds."""

from datetime import timedelta

import pytest

from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import add_local_host, save_profile
from orchestrator.runs.models import Build, Job, Placement
from tests.support.factories import make_run


@pytest.fixture
def fleet(world):
    """Next to `here`: two T490s with separate addresses; one generates the load."""
    profile = save_profile(member=world.personas.alice, slug="t490s", name="T490s")
    for name, tags in (("left", ["load"]), ("right", [])):
        host = add_local_host(
            member=world.personas.alice, name=name, profile=profile, python="python3"
        )
        Host.objects.filter(pk=host.pk).update(tags=tags, data_address="10.9.0.1")
    return {host.name: host for host in Host.objects.all()}


def list_placements(shown):
    return [
        {each["role"]: each["host_selector"] for each in job["placements"]} for job in shown["jobs"]
    ]


def test_profiles_tags_roles_and_a_priority_are_accepted(world, alice, fleet):
    wanted = world.run_body(
        hosts=["profile:t490s"],
        placements=[{"target": "right", "generator": "tag:load"}],
        priority="high",
    )
    answer = alice.post("runs", wanted)
    assert answer.status_code == 201
    assert answer.json()["priority"] == "high"
    assert [job["host"] for job in answer.json()["jobs"]] == [None, "right"]
    assert list_placements(answer.json()) == [
        {"target": "profile:t490s"},
        {"target": "host:right", "generator": "tag:load"},
    ]


def test_the_parent_is_the_default_baseline(world, alice):
    wanted = world.run_body(contenders=[world.shas[2]])
    del wanted["baseline"]
    shown = alice.post("runs", wanted).json()
    assert shown["baseline"]["commit"] == world.shas[1]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"hosts": []}, "hosts"),
        ({"hosts": ["profile:none"]}, "hosts"),
        ({"hosts": ["tag:none"]}, "hosts"),
        ({"hosts": [], "placements": [{"target": "right", "generator": "nowhere"}]},
         "placements[0].generator"),
        ({"hosts": [], "placements": [{"generator": "right"}]}, "placements[0].target"),
        ({"hosts": [], "placements": [{"target": "right", "victim": "left"}]},
         "placements[0].victim"),
        ({"priority": "urgent"}, "priority"),
    ],
)  # fmt: skip
def test_an_impossible_placement_is_refused(world, alice, fleet, changes, field):
    answer = alice.post("runs", world.run_body(**changes))
    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_hosts_of_roles_and_wait_reasons_are_shown(world, alice, fleet):
    run = make_run(
        world.personas.alice,
        world.shas[:2],
        hosts=("here",),
        placements=({"target": "right", "generator": "tag:load"},),
    )
    there = run.jobs.get(host__name="right")
    Placement.objects.filter(job=there, role="generator").update(host=fleet["left"])
    Job.objects.filter(pk=there.pk).update(state="measuring")
    Host.objects.filter(name="here").update(state="maintenance", message="a new fan")
    here, there = sorted(alice.get(f"runs/{run.pk}").json()["jobs"], key=lambda job: job["host"])

    assert here["waiting"] == "here is in maintenance: a new fan"
    assert there["waiting"] == ""
    assert there["placements"][1] == {
        "role": "generator",
        "host_selector": "tag:load",
        "host": "left",
    }


def test_the_time_of_the_next_attempt_is_reported(world, alice):
    run = world.queue_run()
    later = utc_now() + timedelta(minutes=1)
    run.jobs.update(attempt=2, not_before=later)
    (job,) = alice.get(f"runs/{run.pk}").json()["jobs"]
    assert job["attempt"] == 2
    assert job["not_before"].startswith(f"{later:%Y-%m-%dT%H:%M:%S}")


def test_trials_of_a_job_without_a_host_are_listed(world, alice, fleet):
    run = make_run(world.personas.alice, world.shas[:2], hosts=("profile:t490s",))
    trials = alice.get(f"runs/{run.pk}/trials").json()["trials"]
    assert {trial["host"] for trial in trials} == {None}
    single = alice.get(f"trials/{trials[0]['id']}").json()
    assert (single["host"], single["hosts"]) == (None, {})


def test_a_trial_names_the_host_that_measured_it(world, alice, fleet):
    run = world.measure_run(100, 100)
    trial = run.jobs.get().trials.first()
    provenance = {"hosts": {"target": "left", "generator": "right"}}
    type(trial).objects.filter(pk=trial.pk).update(host=fleet["left"], provenance=provenance)
    shown = alice.get(f"trials/{trial.pk}").json()
    assert (shown["host"], shown["hosts"]) == ("left", provenance["hosts"])


@pytest.fixture
def build(world):
    job = world.queue_run().jobs.get()
    commit = job.run.variants.first().commit
    return Build.objects.create(
        job=job, host=job.host, commit=commit, log="cc -O2\n<b>done</b>\n", started_at=utc_now()
    )


def test_builds_are_shown_and_their_logs_downloaded(world, alice, build):
    (job,) = alice.get(f"runs/{build.job.run_id}").json()["jobs"]
    (shown,) = job["builds"]
    assert shown["log_url"] == f"/api/v1/builds/{build.pk}/log"
    assert (shown["state"], shown["host"], shown["commit"]) == ("building", "here", world.shas[0])
    answer = alice.get(f"builds/{build.pk}/log")
    assert answer.content == b"cc -O2\n<b>done</b>\n"
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_a_viewer_reads_a_log_and_a_stranger_does_not(build, bob, mallory):
    assert bob.get(f"builds/{build.pk}/log").status_code == 200
    assert mallory.get(f"builds/{build.pk}/log").status_code == 404
