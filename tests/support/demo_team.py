"""A team that has used Pitwall for a while, with content for every screen.

It uses the product's own services; measurements are filled in. Browser tests, the pictures of all
screens and `make bench-pages` use it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.db.models import F

from orchestrator.accounts.invitations import create_invitation
from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Membership, Role
from orchestrator.accounts.services import create_team, create_token
from orchestrator.alerts import alert_rules
from orchestrator.alerts.channel_service import NewChannel, create_channel, send_test
from orchestrator.alerts.models import Alert, Channel, Delivery
from orchestrator.benchmarks.models import Benchmark, Commit, Project
from orchestrator.benchmarks.sharing import set_public
from orchestrator.calibration import calibrations
from orchestrator.core.clock import utc_now
from orchestrator.fleet.host_settings import put_in_maintenance, set_host_settings
from orchestrator.fleet.models import Host, HostTransport
from orchestrator.fleet.services import add_local_host, save_profile
from orchestrator.forges.models import BenchmarkRequest, PullRequest
from orchestrator.forges.services import NewConnection, save_connection
from orchestrator.regressions import bisections, confirmations
from orchestrator.reports.models import ReferenceSource
from orchestrator.reports.reference_suites import import_published, list_reference_suites
from orchestrator.reports.saved_reports import save_report
from orchestrator.results.models import ImportState, ResultImport, Series
from orchestrator.retention.deletions import delete_benchmark
from orchestrator.retention.pins import pin_commit
from orchestrator.runs.backfills import BackfillRequest, start_backfill
from orchestrator.runs.calibration import NewCalibration, start_calibration
from orchestrator.runs.cancelling import cancel_run
from orchestrator.runs.claims import end_job
from orchestrator.runs.earlier_commits import CommitSelection, CommitSource
from orchestrator.runs.models import Build, Job, Run, Schedule, Trial
from orchestrator.runs.schedules import NewSchedule, create_schedule
from orchestrator.runs.states import JobState
from tests.support.commit_lines import Line, build_line
from tests.support.factories import (
    DEFINITION,
    Personas,
    add_member,
    finish_run,
    make_definition,
    make_local_host,
    make_personas,
    make_project,
    make_run,
)
from tests.support.trials import ERRORS, STEAL, doubt, first_trial, leave_json, leave_load

#: Twelve cases with the longest names.
MANY = (
    DEFINITION.replace("title: Hello", "title: Hello, twice")
    .replace("  path: /hello\n", '  path: "/{page}"\n')
    .replace(
        "  connections: [4]",
        "  connections: [1, 4, 16, 64, 256, 1024]\n"
        "  page: [hello, hello-with-a-greeting-of-many-letters]",
    )
)
REPORT = """\
version: 1
title: Which number of connections is best
benchmark: server/many
commit: newest
tables:
  - title: All cases
    rows: [connections]
    columns:
      - {metric: requests.rate, across: [page]}
      - {title: p99, metric: latency.p99}
    sort: p99
original: {hardware: A laptop with four cores, size: One run of 30 s}
claims:
  - claim: Each number of connections answers at least 10 requests per second.
    source: Table 1
    published: 12 to 40 per second
    metric: requests.rate
    cases: connections in (16, 64)
    relation: at_least
    value: 10
  - claim: 16 connections answer more requests per second than 64.
    source: Text below the table
    metric: requests.rate
    cases: connections == 16
    relation: greater
    than: connections == 64
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTeam:
    """The parameters of the addresses of its screens; `ids` by the kind of object."""

    personas: Personas
    shas: list[str]
    ids: Mapping[str, object]


def make_demo_team(folder: Path) -> DemoTeam:
    """Fill an empty database; the git repository is created in `folder`."""
    personas = make_personas()
    alice = personas.alice
    project, shas = make_project(alice, folder / "repository")
    make_definition(alice, project)
    host = make_local_host(alice)
    done = finish_run(make_run(alice, shas, rounds=6), [1000, 1001, 850])
    make_definition(alice, project, slug="many", source=MANY)
    # Its last commits exist only in the database, so later runs fetch nothing.
    runs = {"run": _many_cases(personas, shas), **_unfinished(personas, shas)}
    trial = measured_with_doubts(done)
    _create_analysis(personas, host, shas)
    alert = raise_alert(build_line(alice, project, host, slug="long", cases=2))
    _saved(personas, project.slug, shas)
    channel, delivery = _create_deliveries(personas, project)
    set_public(member=alice, project=project, public=True)
    ids = {
        **{name: run.pk for name, run in runs.items()},
        "host": host.pk,
        "trial": trial.pk,
        "alert": alert.pk,
        "channel": channel.pk,
        "delivery": delivery.pk,
        "build": Build.objects.get().pk,
        "invitation": _team(personas),
        "backfill": _start_backfill(alice),
        "schedule": Schedule.objects.get().pk,
        "reference": ReferenceSource.objects.all()[0].pk,
        **_imports(alice),
        **_point(),
    }
    return DemoTeam(personas=personas, shas=shas, ids=ids)


def _start_backfill(member: Member) -> object:
    """Return the id of a backfill with a queued run for each of two commits."""
    selection = CommitSelection(source=CommitSource.LAST, count=2)
    request = BackfillRequest(
        benchmark="hello", project="server", hosts=("here",), selection=selection, again=True
    )
    return start_backfill(member=member, request=request).pk


def _imports(member: Member) -> dict[str, object]:
    """Add imports in each state; return the ids of a ready and of a finished history."""
    token = create_token(member=member, name="nightly").token
    fields = {
        "team": member.team, "sender": member.user, "token": token, "project": "server",
        "size": 31_000_000,
    }  # fmt: skip
    now = utc_now()
    ResultImport.objects.create(
        **fields, name="2025.jsonl.gz", state=ImportState.DONE, checked=180_000, total=180_000,
        done=180_000, accepted=179_400, ended_at=now,
    )  # fmt: skip
    ResultImport.objects.create(
        **fields, name="nightly.csv", state=ImportState.FAILED, checked=10_000, ended_at=now,
        faults=[["line 4711", "metrics.latency.p99: expected a number, got '-'"]],
    )  # fmt: skip
    ResultImport.objects.create(
        **fields, name="2026.jsonl.gz", state=ImportState.RUNNING, checked=150_000, total=150_000,
        done=60_000, accepted=60_000, claimed_until=now + timedelta(days=1),
    )  # fmt: skip
    history = {**fields, "token": None, "name": "data.js", "history": {}, "preview": _PREVIEW}
    done = ResultImport.objects.create(
        **history, state=ImportState.DONE, unknown_commits="keep", total=7_603, done=7_603,
        accepted=7_560, ended_at=now,
    )  # fmt: skip
    ready = ResultImport.objects.create(**history, state=ImportState.READY, last_step_at=now)
    return {"import": ready.pk, "import-done": done.pk}


#: As `measurements.history_plan.HistoryPreview`.
_PREVIEW = {
    "format": "github-action-benchmark", "values": 7_603, "series": 27, "unknown": 3,
    "spread": 7_603, "undirected": 1,
    "benchmarks": [
        {"slug": "end-to-end", "exists": False, "series": 26, "values": 7_163},
        {"slug": "pipeline", "exists": True, "series": 1, "values": 440},
    ],
    "hosts": ["imported"], "commits": 440, "matched": 438, "by_date": 0, "unknown_values": 54,
    "unknown_commits": [
        {"name": "e" * 40, "subject": "Try another buffer", "at": "2024-05-06T07:08:09+00:00"},
        {"name": "f" * 40, "subject": "", "at": None},
    ],
    "first_at": "2020-11-17T00:03:04+00:00", "last_at": "2026-08-17T20:29:54+00:00",
    "has_repository": True, "fetch_problem": "",
}  # fmt: skip


def _many_cases(personas: Personas, shas: list[str]) -> Run:
    run = make_run(personas.alice, shas[:2], rounds=6, benchmark="many")
    factors = {
        "connections 1, page hello": 0.8,
        "connections 1024, page hello": 0.93,
        "connections 16, page hello": 1.12,
        "connections 64, page hello": 0.985,
    }
    return finish_run(run, [21000, 21020], wobble=0.004, factors=factors)


def _unfinished(personas: Personas, shas: list[str]) -> dict[str, Run]:
    """Add a running, a waiting, a failed and a cancelled run."""
    alice = personas.alice
    made = {
        name: make_run(alice, shas[:2]) for name in ("running", "failed", "cancelled", "queued")
    }
    now = utc_now()
    Job.objects.filter(run=made["running"]).update(
        state="measuring", phase="measuring round 2 of 5", started_at=now
    )
    Run.objects.filter(pk=made["running"].pk).update(state="running", started_at=now)
    job = made["running"].jobs.get()
    log = "cc -O2 -c server.c\ncc -o server server.o\n"
    Build.objects.create(
        job=job, host=job.host, commit=job.trials.all()[0].variant.commit, state="done",
        seconds=2.5, log=log, log_offset=len(log), started_at=now,
    )  # fmt: skip
    message = "the server did not answer GET /hello within 5 s: see the log of the trial"
    end_job(made["failed"].jobs.get(), JobState.FAILED, message)
    cancel_run(member=alice, run_id=made["cancelled"].pk)
    return made


def _create_deliveries(personas: Personas, project: Project) -> tuple[Channel, Delivery]:
    """Add a webhook that was tried twice, and a forge with a request to approve."""
    target = "https://ci.example.org/hooks/pitwall"
    new = NewChannel(name="Our CI", kind="webhook", target=target, events=("alert.raised",))
    channel = create_channel(member=personas.alice, new=new).channel
    delivery = send_test(member=personas.alice, channel_id=channel.pk)
    tried = {"at": "2026-01-02T03:04:05.678+00:00", "status": 503, "ms": 12}
    Delivery.objects.filter(pk=delivery.pk).update(
        state="failed",
        tries=7,
        headers={"Pitwall-Event": "test", "Pitwall-Delivery": str(delivery.pk)},
        body=json.dumps(delivery.events.get().data),
        log=[{**tried, "error": "the answer was 503", "answer": "<h1>busy</h1>"}] * 2,
    )
    forge = NewConnection(kind="github", repository="ada/server", token="t", hosts=("here",))
    saved = save_connection(member=personas.alice, project=project, new=forge)
    pull = PullRequest.objects.create(connection=saved.connection, number=5)
    BenchmarkRequest.objects.create(
        pull=pull, note_id="7", requested_by="grace", benchmark="hello", head_sha="a" * 40,
        from_fork=True, state="waiting", at=utc_now(),
    )  # fmt: skip
    return channel, delivery


def measured_with_doubts(run: Run) -> Trial:
    """Return a trial with a search of six loads, with reasons, seconds and other processes."""
    trial = doubt(first_trial(run), "invalid", ERRORS, STEAL)
    for number in range(6):
        latency_s = 0.002 * 2**number
        leave_load(
            trial, number, rate=100.0 * 2**number, passed=number < 4,
            reason="latency.p99 is < 0.05",
            latencies_us=[round(latency_s * 1e6)], validity="suspect", reasons=[STEAL],
            readings={"latency.p50": latency_s / 2, "latency.p99": latency_s},
        )  # fmt: skip
    second = {"answered": 900, "p50_us": 1000, "p99_us": 4000}
    slices = [{"t": t, **second} for t in range(5)]
    warmup = [{"t": t, **second} for t in (-2, -1)]
    for name in ("rows.json", "rows-2.json"):
        leave_json(trial, name, {"warmup": {"slices": warmup}, "slices": slices})
    interference = {"foreign_share": 0.02, "foreign": [{"name": "x" * 15, "cpu_s": 0.1}] * 3}
    leave_json(trial, "result.json", {"loads": [{"interference": {"a": interference}}] * 6})
    return trial


def _create_analysis(personas: Personas, host: Host, shas: list[str]) -> None:
    """Add hosts in other states; the first one is calibrated twice."""
    alice = personas.alice
    profile = save_profile(member=alice, slug="t490s", name="ThinkPad T490s", cpu_model="i7-8665U")
    for name in ("t490s-1", "t490s-2", "build-farm"):
        add_local_host(member=alice, name=name, profile=profile, python="python3")
    others = {each.name: each for each in Host.objects.exclude(pk=host.pk)}
    put_in_maintenance(member=alice, host_id=others["t490s-2"].pk, reason="new thermal paste")
    set_host_settings(
        member=alice, host_id=host.pk, tags=["load", "rack-4"], open_hours="mon-fri 20:00-07:00"
    )
    Host.objects.filter(pk=others["build-farm"].pk).update(
        transport=HostTransport.EXTERNAL, state="external", work_dir=""
    )
    new = NewCalibration(benchmark="hello", commit=shas[0], pairs=5)
    for wobble in (0.02, 0.03):
        run = start_calibration(member=alice, host_id=host.pk, new=new)
        finish_run(run, [1000], wobble=wobble)
        calibrations.judge_calibrations()


def raise_alert(line: Line) -> Alert:
    """Add two histories that became 8 % slower, with a finished bisection."""
    for case in range(len(line.cases)):
        line.step(until=41, at=26, change=-0.08, every=4, case=case, seed=case)
    line.detect()
    rates = {c.sha: 920.0 if place >= 26 else 1000.0 for place, c in enumerate(line.commits)}
    for _ in range(6):
        confirmations.advance_confirmations(utc_now())
        bisections.advance_bisections(utc_now())
        line.answer_confirmation_runs(rates)
    alert_rules.apply_alert_rules(utc_now())
    return Alert.objects.get()


def _saved(personas: Personas, project: str, shas: list[str]) -> None:
    alice = personas.alice
    benchmark = Benchmark.objects.get(slug="hello", project__slug=project)
    save_report(member=alice, source=REPORT, slug="connections")
    for suite in list_reference_suites():
        import_published(member=alice, suite=suite)
    create_token(member=alice, name="CI of the server")
    create_schedule(
        member=alice,
        new=NewSchedule(
            name="nightly", cron="0 3 * * *", benchmark="hello", baseline_ref="main~1",
            contender_ref="main", hosts=("here",),
        ),
    )  # fmt: skip
    pin_commit(member=alice, project=benchmark.project, ref=shas[0], reason="release 1.0")
    make_definition(alice, benchmark.project, slug="former")
    delete_benchmark(member=alice, project=project, slug="former")


def _team(personas: Personas) -> str:
    """Add members of all roles, an invitation, and another team of alice.

    Return the secret of the invitation.
    """
    add_member(personas.alice, "carol", Role.MEMBER)
    add_member(personas.alice, "mia", Role.MAINTAINER)
    violet = create_team(slug="violet", name="Violet")
    Membership.objects.create(team=violet, user=personas.alice.user, role=Role.VIEWER)
    return create_invitation(
        member=personas.alice, role=Role.VIEWER, email="dora@example.org"
    ).secret


def _point() -> dict[str, object]:
    """Return a history and one of its commits that has a measured trial."""
    series = Series.objects.filter(benchmark__slug="long").order_by("pk")[0]
    commit = Commit.objects.filter(pk__in=Trial.objects.filter(
        job__run__definition__benchmark__slug="long", state="measured"
    ).values(commit_id=F("variant__commit_id"))).order_by("position")[0]  # fmt: skip
    return {"series": series.pk, "sha": commit.sha}
