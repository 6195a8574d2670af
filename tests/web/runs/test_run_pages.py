"""A run as it is watched: live panel, 304, end, cancel, trials."""

import json
import zlib
from datetime import timedelta

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from orchestrator.fleet.models import Host
from orchestrator.reports.saved_reports import save_report
from orchestrator.results.models import Artifact
from orchestrator.runs.models import Job, Run, Trial
from tests.support.factories import (
    DEFINITION,
    finish_run,
    make_definition,
    make_local_host,
    make_run,
)
from tests.support.html_pages import element, elements, get_text, values
from tests.support.trials import ERRORS, invalidate
from tests.support.world import World

STEAL = "steal: the hypervisor took 3 % of the CPUs' time"


def _running(world: World) -> Run:
    run = make_run(world.alice, world.shas[:2])
    Job.objects.filter(run=run).update(state="measuring", phase="warming up")
    Run.objects.filter(pk=run.pk).update(state="running")
    return run


def test_the_page_polls_while_the_run_is_active(world: World, alice: Client) -> None:
    run = _running(world)
    page = alice.get(reverse("run", args=[run.pk])).content.decode()

    assert f"{reverse('run-progress', args=[run.pk])}?cases=all&page=1" in values(
        page, "[hx-get]", "hx-get"
    )
    assert "warming up" in page
    assert "data-seconds-left" in page
    assert "0 of 10 trials" in page
    assert elements(page, "meta[http-equiv=refresh]")


def test_the_age_of_the_last_contact_with_the_host_is_shown(world: World, alice: Client) -> None:
    run = _running(world)
    address = reverse("run-progress", args=[run.pk])
    now = timezone.now()
    Host.objects.filter(jobs__run=run).update(last_seen_at=now - timedelta(minutes=3, seconds=5))
    answer = alice.get(address)
    assert "last contact 3 min ago" in get_text(element(answer.content.decode(), ".now"))
    tag = answer.headers["ETag"]
    assert alice.get(address, HTTP_IF_NONE_MATCH=tag).status_code == 304
    Host.objects.filter(jobs__run=run).update(last_seen_at=now)
    assert alice.get(address, HTTP_IF_NONE_MATCH=tag).status_code == 200


def test_no_countdown_is_shown_before_a_run_begins(world: World, alice: Client) -> None:
    run = make_run(world.alice, world.shas[:2])
    page = alice.get(reverse("run", args=[run.pk])).content.decode()
    assert "after it starts" in page
    assert "data-seconds-left" not in page


def test_reports_that_include_the_run_are_listed(world: World, alice: Client) -> None:
    text = "{version: 1, title: Fast, tables: [{rows: [commit], columns: [{metric: latency.p50}]}]}"
    source = text.replace("version: 1,", "version: 1, benchmark: server/hello,")
    save_report(member=world.alice, source=source, slug="fast")
    page = alice.get(reverse("run", args=[world.run.pk])).content.decode()
    address = f"{reverse('report', args=['fast'])}?run={world.run.pk}"
    assert get_text(element(page, f"a[href='{address}']")) == "Fast"
    assert "only <a" in alice.get(address).content.decode()


def test_the_page_responds_304_until_something_changes(world: World, alice: Client) -> None:
    run = _running(world)
    address = reverse("run-progress", args=[run.pk])
    first = alice.get(address)
    tag = first.headers["ETag"]
    again = alice.get(address, HTTP_IF_NONE_MATCH=tag)
    Job.objects.filter(run=run).update(phase="measuring")
    moved = alice.get(address, HTTP_IF_NONE_MATCH=tag)

    assert first.status_code == 200
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    assert moved.status_code == 200
    assert moved.headers["ETag"] != tag


def test_the_etag_matches_the_content_of_the_page(world: World, alice: Client) -> None:
    run = _running(world)
    page = alice.get(reverse("run", args=[run.pk])).content.decode()
    tag = alice.get(reverse("run-progress", args=[run.pk])).headers["ETag"]

    assert f"If-None-Match&quot;: &quot;\\&quot;{tag.strip(chr(34))}\\&quot;" in page


def test_polling_stops_after_the_run_ended(world: World, alice: Client) -> None:
    panel = alice.get(reverse("run-progress", args=[world.run.pk]), HTTP_HX_REQUEST="true")
    page = alice.get(reverse("run", args=[world.run.pk])).content.decode()

    assert "Retention" in panel.content.decode()
    assert "Cancel" not in panel.content.decode()
    assert "hx-get" not in panel.content.decode() + page


def test_verdicts_link_to_the_comparison(world: World, alice: Client) -> None:
    page = alice.get(reverse("run", args=[world.run.pk])).content.decode()

    assert elements(page, "[data-verdict=regressed]")
    assert elements(page, "[data-verdict=equivalent]")
    assert f"contender={world.shas[2]}&amp;run={world.run.pk}" in page


def test_the_reason_of_a_failed_job_is_shown(world: World, alice: Client) -> None:
    run = _running(world)
    Job.objects.filter(run=run).update(state="failed", message="oha is missing: <install> it")
    page = alice.get(reverse("run", args=[run.pk])).content.decode()

    assert "oha is missing: &lt;install&gt; it" in page


def test_the_reason_of_a_suspect_trial_is_shown(world: World, alice: Client) -> None:
    trial = world.run.jobs.get().trials.first()
    assert trial is not None
    Trial.objects.filter(pk=trial.pk).update(validity="suspect", reasons=[STEAL])
    page = alice.get(reverse("run-trials", args=[world.run.pk])).content.decode()

    assert "suspect" in page
    assert "CPU that the hypervisor took" in page
    assert "took 3 % of the CPUs&#x27; time" in page


def test_a_run_is_cancelled(world: World, alice: Client) -> None:
    run = make_run(world.alice, world.shas[:2])
    answer = alice.post(reverse("run-cancel", args=[run.pk]))
    run.refresh_from_db()

    assert answer.headers["Location"] == reverse("run", args=[run.pk])
    assert run.state == "cancelled"
    page = " ".join(alice.get(reverse("run", args=[run.pk])).content.decode().split())
    assert "0 of 10 trials, 10 skipped" in page
    assert "0 of 1 done" in page


def test_an_ended_run_cannot_be_cancelled(world: World, alice: Client) -> None:
    answer = alice.post(reverse("run-cancel", args=[world.run.pk]))

    assert answer.status_code == 409
    assert "This run has already ended" in answer.content.decode()


def test_viewers_and_strangers_cannot_cancel(world: World, bob: Client, mallory: Client) -> None:
    run = make_run(world.alice, world.shas[:2])

    assert bob.post(reverse("run-cancel", args=[run.pk])).status_code == 403
    assert mallory.post(reverse("run-cancel", args=[run.pk])).status_code == 404
    run.refresh_from_db()
    assert run.cancel_requested_at is None


def test_cancelling_needs_post(world: World, alice: Client) -> None:
    assert alice.get(reverse("run-cancel", args=[world.run.pk])).status_code == 405


def test_cancelling_needs_the_csrf_token(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.alice.user)

    assert client.post(reverse("run-cancel", args=[world.run.pk])).status_code == 403


def test_only_members_cancel_a_case(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    run = make_run(world.alice, world.shas[:2])
    address = reverse("run-cancel-part", args=[run.pk])
    case = run.jobs.get().trials.values_list("case", flat=True)[0]

    assert bob.post(address, {"case": case}).status_code == 403
    assert mallory.post(address, {"case": case}).status_code == 404
    assert "Cancel<span" not in bob.get(reverse("run", args=[run.pk])).content.decode()
    assert [alice.post(address, given).status_code for given in ({}, {"job": "x"})] == [400, 400]
    assert alice.post(address, {"case": case + 999}).status_code == 404
    assert Trial.objects.filter(job__run=run, state="planned").count() == 10

    assert alice.post(address, {"case": case}).status_code == 302
    assert set(Trial.objects.filter(job__run=run).values_list("state", flat=True)) == {"skipped"}
    assert alice.post(address, {"case": case}).status_code == 409
    live = alice.post(address, {"case": case}, HTTP_HX_REQUEST="true")
    assert "○ queued" not in live.content.decode()
    assert "– cancelled" in get_text(live)


def test_the_grid_shows_changes_by_host_while_the_run_is_active(
    world: World, alice: Client
) -> None:
    make_local_host(world.alice, "there")
    run = make_run(world.alice, world.shas[::2], hosts=("here", "there"))
    finish_run(run, [1000, 850])
    slow, other = run.jobs.get(host=world.host), run.jobs.get(host__name="there")
    Trial.objects.filter(job=other, round=5).update(state="planned", validity="")
    Job.objects.filter(pk=other.pk).update(state="measuring", phase="warming up")
    Run.objects.filter(pk=run.pk).update(state="running", ended_at=None)
    trial = slow.trials.order_by("-position")[0]
    load = {
        "load_started_at": 10.0,
        "load_ended_at": 12.0,
        "samples": [{"t": second, "server_cpu_s": second * 0.5} for second in (0.0, 1.0)],
        "usage": {"server_cpu_s": 1.5, "tool_cpu_s": None},
    }
    packed = zlib.compress(json.dumps({"loads": [load]}).encode())
    Artifact.objects.create(
        trial=trial, name="result.json", sha256="0" * 64, size=9, compressed=packed
    )
    page = alice.get(reverse("run", args=[run.pk])).content.decode()
    text = get_text(element(page, "table.case-states"))

    assert "Case here there Cancel" in text
    assert "● done 10 of 10 usable" in text
    assert "◔ under way 8/10" in text
    assert f"{world.shas[2][:7]} 850 1/s · 4.71 ms · 1.06 s / 1k ▼ regressed" in text
    assert "CPU, last trial: server 0.75 cores" in page
    assert elements(page, ".server[points^='0.0,']")
    failed = alice.get(reverse("run", args=[run.pk]), {"cases": "failed"}).content.decode()
    assert "No trial of a case has failed." in failed


def test_a_trial_is_shown_completely(world: World, alice: Client) -> None:
    trial = world.run.jobs.get().trials.first()
    assert trial is not None
    page = alice.get(reverse("trial", args=[trial.pk])).content.decode()

    assert "http://127.0.0.1:1/" in page
    assert "Requests per second" in page
    assert trial.variant.commit.sha in page
    assert "Test CPU" in page
    assert "tool.json" in page


def test_raw_files_are_downloaded(world: World, alice: Client) -> None:
    trial = world.run.jobs.get().trials.first()
    assert trial is not None
    answer = alice.get(reverse("trial-artifact", args=[trial.pk, "tool.json"]))

    assert answer.content == b"{}"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert alice.get(reverse("trial-artifact", args=[trial.pk, "no.txt"])).status_code == 404


def test_a_run_with_only_invalid_trials_is_not_shown_as_finished(
    world: World, alice: Client
) -> None:
    invalidate(world.run, ERRORS)
    for address in (reverse("run", args=[world.run.pk]), reverse("runs")):
        page = alice.get(address).content.decode()
        assert elements(page, "[data-state='no_data']"), address
        assert not elements(page, "[data-state=finished]"), address
    page = alice.get(reverse("run", args=[world.run.pk])).content.decode()
    notice = element(page, "#run-message")
    assert notice.get("data-kind") == "warning"
    assert "all 18 trials are invalid: Answers of another status (18 trials)" in get_text(notice)
    badge = alice.get(reverse("badge-verdict", args=["server", "hello"])).content.decode()
    assert "not compared" in badge


def test_the_page_names_the_commits_of_other_repositories(world: World, alice: Client) -> None:
    other = world.add_project("framework")
    source = f"{DEFINITION}repositories: {{framework: {{project: framework, ref: main}}}}\n"
    make_definition(world.alice, world.project, source=source)
    page = alice.get(reverse("run", args=[world.queue_run().pk])).content.decode()
    shown = get_text(element(page, "#run-repositories"))
    assert shown == f"With framework at main ( framework {world.shas[2][:10]} )"
    assert values(page, "#run-repositories a", "href") == [reverse("project", args=[other.slug])]
