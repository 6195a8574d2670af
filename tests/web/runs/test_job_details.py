"""Jobs on a run's page: roles and their hosts, why they wait, attempts, builds and their logs."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import add_local_host, save_profile
from orchestrator.runs.models import Build, Job, Placement, Run
from tests.support.factories import make_run
from tests.support.html_pages import element, elements, get_text, values
from tests.support.world import World

HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def spare(world: World) -> Host:
    profile = save_profile(member=world.alice, slug="t490s", name="T490s")
    host = add_local_host(member=world.alice, name="spare", profile=profile, python="python3")
    Host.objects.filter(pk=host.pk).update(tags=["load"], data_address="10.9.0.2")
    Host.objects.filter(pk=world.host.pk).update(data_address="10.9.0.1")
    return host


def make_build(run: Run, variant: int = 0, **changes: Any) -> Build:
    job = run.jobs.get()
    given = {
        "job": job,
        "host": job.host,
        "commit": run.variants.all()[variant].commit,
        "started_at": utc_now(),
        **changes,
    }
    return Build.objects.create(**given)


def fetch_run_page(run: Run, client: Client) -> str:
    return client.get(reverse("run", args=[run.pk])).content.decode()


def jobs_on(page: str) -> str:
    """The text of the list of jobs."""
    return get_text(element(page, "ul.jobs"))


def test_the_request_is_shown_until_a_host_is_assigned(
    world: World, alice: Client, spare: Host
) -> None:
    run = make_run(world.alice, world.shas[:2], hosts=("profile:t490s",))
    assert "any T490s ○ queued 0 / 10" in jobs_on(fetch_run_page(run, alice))

    listed = alice.get(reverse("runs")).content.decode()
    trials = alice.get(reverse("run-trials", args=[run.pk])).content.decode()
    trial = run.jobs.get().trials.first()
    assert trial is not None
    single = alice.get(reverse("trial", args=[trial.pk])).content.decode()
    assert "any T490s" in listed
    # Each of the 10 trials has neither a host nor its three primary metrics yet.
    assert [get_text(cell) for cell in elements(trials, "td")].count("–") == 4 * 10
    assert "Host any T490s Round" in get_text(single)


def test_a_host_of_several_jobs_is_named_once(world: World, alice: Client) -> None:
    first = world.run.jobs.get()
    Job.objects.create(run=world.run, host=first.host, state="finished")
    cells = elements(alice.get(reverse("runs")), "td")
    assert "here" in [get_text(cell) for cell in cells]


def test_hosts_are_shown_with_their_roles(world: World, alice: Client, spare: Host) -> None:
    roles = {"target": "here", "generator": "tag:load"}
    run = make_run(world.alice, world.shas[:2], hosts=(), placements=(roles,))
    assert "target here generator any tagged load" in jobs_on(fetch_run_page(run, alice))

    Placement.objects.filter(job__run=run, role="target").update(host=world.host)
    Placement.objects.filter(job__run=run, role="generator").update(host=spare)
    assert "target here generator spare of any tagged load" in jobs_on(fetch_run_page(run, alice))


def test_the_wait_reason_of_a_job_is_shown(world: World, alice: Client, spare: Host) -> None:
    run = make_run(world.alice, world.shas[:2], hosts=("spare",))
    Host.objects.filter(pk=spare.pk).update(state="quarantined", message="slower by 9 %")
    assert "spare is quarantined: slower by 9 %" in jobs_on(fetch_run_page(run, alice))


def test_the_attempt_and_the_next_one_are_shown(world: World, alice: Client) -> None:
    run = make_run(world.alice, world.shas[:2])
    later = utc_now() + timedelta(minutes=5)
    Job.objects.filter(run=run).update(
        attempt=2, not_before=later, message="here: the connection was lost"
    )
    page = fetch_run_page(run, alice)
    text = jobs_on(page)
    assert "attempt 2" in text
    assert re.search(r"next attempt in [45] min", text)
    assert f"{later:%H:%M:%S} UTC" in page
    assert "here: the connection was lost" in text


def test_builds_are_shown_with_the_end_of_their_logs(world: World, alice: Client) -> None:
    run = make_run(world.alice, world.shas)
    log = "\n".join(f"line {number} <b>" for number in range(1000)) + "\n\x1b[31mred\x1b[0m\n"
    make_build(run, log=log, log_offset=len(log))
    make_build(run, 1, state="failed", seconds=3.0, message="make ended with 2")
    make_build(run, 2, state="done", cached=True)
    page = fetch_run_page(run, alice)
    text = jobs_on(page)

    assert f"building build of {world.shas[0][:7]} on here" in text
    assert "line 999 <b> red" in text
    assert "line 900" not in text
    assert "3 s make ended with 2" in text
    assert "cached" in text


def test_the_live_panel_updates_with_the_builds(world: World, alice: Client) -> None:
    run = make_run(world.alice, world.shas[:2])
    address = reverse("run-progress", args=[run.pk])
    build = make_build(run)
    tags = [alice.get(address).headers["ETag"]]
    for change in ({"log_offset": 5}, {"state": "done"}, {"seconds": 1.0}):
        assert alice.get(address, HTTP_IF_NONE_MATCH=tags[-1]).status_code == 304
        Build.objects.filter(pk=build.pk).update(**change)
        tags.append(alice.get(address, HTTP_IF_NONE_MATCH=tags[-1]).headers["ETag"])
    assert len(set(tags)) == 4


def test_queries_do_not_grow_with_jobs(
    world: World, alice: Client, django_assert_max_num_queries: Any
) -> None:
    run = make_run(world.alice, world.shas[:2])
    first = run.jobs.get()
    for _ in range(20):
        job = Job.objects.create(run=run, host=world.host, expected_s=first.expected_s)
        Placement.objects.create(job=job, role="target", wanted_host=world.host)
    with django_assert_max_num_queries(40):
        fetch_run_page(run, alice)


def test_the_whole_log_is_shown_and_followed(world: World, alice: Client) -> None:
    run = make_run(world.alice, world.shas[:2])
    build = make_build(run, log="\n".join(f"line {n}" for n in range(1000)), log_offset=9)
    address = reverse("build-log", args=[build.pk])
    page = alice.get(address).content.decode()
    part = alice.get(address, **HTMX)

    assert "line 0\nline 1\n" in page
    assert "line 999" in page
    assert address in values(page, "[hx-get]", "hx-get")
    assert elements(part, "html") == []
    again = alice.get(address, HTTP_IF_NONE_MATCH=part.headers["ETag"], **HTMX)
    assert again.status_code == 304

    Build.objects.filter(pk=build.pk).update(state="done", seconds=2.0)
    ended = alice.get(address, HTTP_IF_NONE_MATCH=part.headers["ETag"], **HTMX)
    assert ended.status_code == 200
    assert elements(ended, "[hx-get]") == []


def test_a_stranger_finds_no_log(world: World, alice: Client, bob: Client, mallory: Client) -> None:
    run = make_run(world.alice, world.shas[:2])
    address = reverse("build-log", args=[make_build(run).pk])
    assert [client.get(address).status_code for client in (alice, bob, mallory)] == [200, 200, 404]


def test_limits_of_a_trial_are_shown(world: World, alice: Client, spare: Host) -> None:
    trial = world.run.jobs.get().trials.first()
    assert trial is not None
    applied = {
        "mechanism": "cgroup2", "cpus": [2, 3], "cpu_quota": 1.5, "memory_bytes": 2**30,
        "open_files": 1024, "refused": {}, "throttled": 7, "oom_kills": 0,
    }  # fmt: skip
    refused = {**applied, "mechanism": "affinity", "refused": {"cpu_quota": "no <group>"}}
    type(trial).objects.filter(pk=trial.pk).update(
        provenance={
            **trial.provenance,
            "hosts": {"target": "here", "generator": "spare"},
            "limits": {"server": applied, "service:redis:1": refused},
        }
    )
    page = alice.get(reverse("trial", args=[trial.pk])).content.decode()
    text = get_text(page)

    assert "target here · generator spare" in text
    assert "server 2, 3 1.5 1.00 GiB 1024 cgroup2 throttled 7 times redis 1" in text
    assert "affinity throttled 7 times cpu quota not applied: no <group>" in text


def test_the_placement_of_a_trial_is_shown(world: World, alice: Client, spare: Host) -> None:
    trial = world.run.jobs.get().trials.first()
    assert trial is not None
    here = {
        "cpus": {"server": [1], "service:redis": [2, 3]}, "system": [0, 4], "agent": [0, 4],
        "siblings": [5], "shared": [], "problem": "", "note": "cores of several types: redis",
    }  # fmt: skip
    there = {**here, "cpus": {"tool": None}, "system": [], "agent": None, "siblings": [],
             "problem": "macOS cannot pin processes to CPUs", "note": ""}  # fmt: skip
    type(trial).objects.filter(pk=trial.pk).update(
        provenance={
            **trial.provenance,
            "hosts": {"target": "here", "generator": "spare"},
            "placement": {"a": here, "b": there},
        }
    )
    text = get_text(alice.get(reverse("trial", args=[trial.pk])))

    assert "here server 1 here redis 2-3 here idle siblings 5 here kept for the system 0,4" in text
    assert "here agent 0,4 spare load tool any spare agent any" in text
    assert "here: cores of several types: redis" in text
    assert "spare: macOS cannot pin processes to CPUs" in text


def test_cases_of_a_build_are_shown(world: World, alice: Client) -> None:
    run = make_run(world.alice, world.shas[:2])
    build = make_build(run, recipe="r1", label="system axum, hyper", log="x", log_offset=1)
    make_build(run, recipe="r2", label="system flask")
    text = jobs_on(fetch_run_page(run, alice))
    short = build.commit.sha[:7]
    assert f"building build of {short} for system axum, hyper on here" in text
    assert f"building build of {short} for system flask on here" in text
    whole = alice.get(reverse("build-log", args=[build.pk])).content.decode()
    assert "for system axum, hyper" in whole


def test_unsupported_cases_are_counted_with_the_reason(world: World, alice: Client) -> None:
    run = make_run(world.alice, world.shas[:2])
    trial = run.jobs.get().trials.first()
    assert trial is not None
    why = "here: it has no cargo (>=1.70 is needed)"
    type(trial).objects.filter(pk=trial.pk).update(state="unsupported", message=why)
    assert "queued 1 / 10 · 1 unsupported" in jobs_on(fetch_run_page(run, alice))
    single = alice.get(reverse("trial", args=[trial.pk]))
    assert why in get_text(single)
    assert elements(single, "[data-state=unsupported]")


def test_a_trial_shows_its_build_provenance(world: World, alice: Client) -> None:
    trial = world.run.jobs.get().trials.filter(state="measured")[0]
    trial.provenance |= {
        "programs": {"python3.11": "3.11.2", "go": None},
        "build": {"digest": "d" * 64, "source_digest": "5" * 64, "checked": True},
        "install": {"name": "0123abcd", "log": "$ python3.11 -m venv"},
    }
    trial.save(update_fields=["provenance"])
    text = get_text(alice.get(reverse("trial", args=[trial.pk])))
    assert "Programs go (version unknown) · python3.11 3.11.2 Build" in text
    assert f"sha256 {'d' * 64} The server ran from this build. Installed 0123abcd" in text


def test_a_trial_shows_that_its_build_was_not_checked(world: World, alice: Client) -> None:
    trial = world.run.jobs.get().trials.filter(state="measured")[0]
    trial.provenance |= {"build": {"digest": "d" * 64, "source_digest": "", "checked": False}}
    trial.save(update_fields=["provenance"])
    text = get_text(alice.get(reverse("trial", args=[trial.pk])))
    assert "This host does not show whether the server ran from it." in text
