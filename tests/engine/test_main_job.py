"""Commits of a real server are measured by real load, and the difference is found."""

import json
import shlex
from pathlib import Path

import pytest
from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Commit
from orchestrator.benchmarks.selectors import load_benchmark
from orchestrator.comparisons.compare import compare_commits
from orchestrator.fleet.models import Host
from orchestrator.measurements.distributions import merge_trials
from orchestrator.measurements.readings import load_values
from orchestrator.measurements.selectors import load_artifact, load_trial_details
from orchestrator.results.models import Point
from orchestrator.retention.deletions import delete_project, restore_project
from orchestrator.runs.cancelling import cancel_run
from orchestrator.runs.models import HostLease, Run, Trial
from orchestrator.runs.selectors import load_run
from tests.support.engine import (
    MEASURED,
    Engine,
    assert_measured,
    cancel_the_long_case,
    server,
    with_a_long_case,
)
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
    make_shared_host,
)

pytestmark = pytest.mark.engine


def processes_below(folder: Path) -> list[str]:
    """Command lines of living processes that work in or for `folder`."""
    commands = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            where = str((entry / "cwd").readlink())
        except OSError:
            continue
        if f"{folder}/data/hosts" in words or where.startswith(f"{folder}/data/hosts"):
            commands.append(shlex.join([entry.name, words]))
    return commands


def test_a_slower_commit_is_found_and_all_results_are_kept(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    alice = team.alice
    versions = [server(), server(start="# nothing"), server(wait_s=0.03)]
    project, shas = make_project(alice, tmp_path / "origin", versions)
    make_definition(alice, project)
    make_shared_host(alice)
    # Two more than a verdict needs: a busy machine may void a trial, and its block with it.
    run = engine.finish(make_run(alice, [shas[0], shas[2]], rounds=7))
    assert_measured(run)
    placement = run.jobs.get().trials.filter(state="measured").first().provenance["placement"]["a"]
    assert set(placement["cpus"]) == {"server", "tool"}
    assert not set(placement["cpus"]["server"]) & set(placement["cpus"]["tool"])

    benchmark = load_benchmark(alice, "hello")
    before, after = (Commit.objects.get(sha=sha) for sha in (shas[0], shas[2]))
    report = compare_commits(alice, benchmark=benchmark, baseline=before, contender=after)
    assert report.verdict == "regressed"
    rate = next(row for row in report.cases[0].metrics if row.key == "requests.rate")
    assert rate.change is not None
    assert rate.change < -0.2
    points = Point.objects.filter(series__metric__key="requests.rate")
    places = sorted(place for point in points for place in point.places)
    counted = Trial.objects.filter(job__run=run, validity__in=["valid", "suspect"])
    assert places == [1 + each.position for each in counted.order_by("position")]
    assert 5 <= rate.blocks <= 7

    trials = list(Trial.objects.filter(job__run=run))
    assert {trial.state for trial in trials} == {"measured"}
    for trial in trials:
        check_provenance(alice, trial)
    assert not HostLease.objects.exists()
    engine.wait_for(lambda: not processes_below(tmp_path), timeout_s=60)


def check_provenance(member: object, trial: Trial) -> None:
    """Everything that a number came from is kept with it, and the parts agree."""
    kept = trial.provenance
    assert kept["tool"]["name"] == "oha"
    assert kept["tool"]["version"]
    assert len(kept["tool"]["sha256"]) == 64
    assert "--output-format" in kept["argv"]
    assert kept["commit"] == trial.variant.commit.sha
    assert trial.started_at is not None
    assert trial.ended_at is not None
    assert trial.started_at < trial.ended_at
    assert trial.job.snapshot is not None
    details = load_trial_details(trial)
    values = {info.key: value for info, value in details.measurements}
    raw = json.loads(load_artifact(member, trial.pk, "tool.json"))  # type: ignore[arg-type]
    assert values["requests.ok"] > 0
    assert -1 not in values.values()
    distribution = merge_trials([trial.pk])
    assert distribution is not None
    assert distribution.total_count == values["requests.ok"]
    assert values["requests.ok"] <= raw["statusCodeDistribution"]["200"]
    names = {file.name for file in details.artifacts}
    assert {"tool.json", "rows.json", "result.json"} <= names


def test_a_job_survives_a_killed_worker_without_lost_or_repeated_trials(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    alice = team.alice
    project, shas = make_project(alice, tmp_path / "origin", [server(), server(start="# same")])
    make_definition(alice, project)
    make_local_host(alice)
    run = make_run(alice, shas)
    measured = Trial.objects.filter(job__run=run, state="measured")
    engine.wait_for(lambda: measured.count() >= 2)
    engine.kill_worker()
    before = set(measured.values_list("pk", flat=True))
    engine.start("-c", "2")
    run = engine.finish(run)

    assert_measured(run)
    assert measured.count() == 10
    assert before <= set(measured.values_list("pk", flat=True))
    assert (
        len(load_values(before | set(measured.values_list("pk", flat=True)), ["requests.rate"]))
        == 10
    )
    host = Host.objects.get()
    journals = (engine.data_dir / "hosts" / str(host.pk) / "jobs").glob("*/*/journal.jsonl")
    events = [json.loads(line) for path in journals for line in path.read_text().splitlines()]
    started = [event["trial"] for event in events if event["event"] == "trial_started"]
    assert sorted(started) == sorted(str(trial.pk) for trial in measured)


def start_long_run(engine: Engine, alice: Member, folder: Path) -> tuple[Run, QuerySet[Trial]]:
    """Return a run of 50 rounds after its first trial, and its measured trials."""
    project, shas = make_project(alice, folder / "origin", [server(), server(start="# same")])
    make_definition(alice, project)
    make_local_host(alice)
    run = make_run(alice, shas, rounds=50)
    measured = Trial.objects.filter(job__run=run, state="measured")
    engine.wait_for(lambda: measured.exists())
    return run, measured


def test_a_cancelled_job_stops_and_keeps_its_results(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    alice = team.alice
    run, measured = start_long_run(engine, alice, tmp_path)
    cancel_run(member=alice, run_id=run.pk)
    engine.wake(run)
    run = engine.finish(run, timeout_s=60)

    assert run.state == "cancelled"
    assert measured.exists()
    assert Trial.objects.filter(job__run=run, state="planned").count() == 0
    assert not HostLease.objects.exists()
    engine.wait_for(lambda: not processes_below(tmp_path), timeout_s=60)


def test_a_project_that_is_deleted_while_its_run_measures_frees_the_host(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    alice = team.alice
    run, measured = start_long_run(engine, alice, tmp_path)
    project = run.definition.benchmark.project
    delete_project(member=alice, slug=project.slug)
    run = engine.finish(run, timeout_s=60)

    assert run.state == "cancelled"
    assert run.message.startswith("cancelled, because the benchmark was deleted")
    assert not HostLease.objects.exists()
    engine.wait_for(lambda: not processes_below(tmp_path), timeout_s=60)
    kept = measured.count()
    restore_project(member=alice, project_id=project.pk)
    assert load_run(alice, run.pk).state == "cancelled"
    assert measured.count() == kept > 0
    shas = [variant.commit.sha for variant in run.variants.all()]
    again = engine.finish(make_run(alice, shas, rounds=1))
    assert again.state in MEASURED


def test_the_next_job_runs_when_the_host_is_free(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    alice = team.alice
    project, shas = make_project(alice, tmp_path / "origin", [server(), server(start="# same")])
    make_definition(alice, project)
    make_local_host(alice)
    runs = [make_run(alice, shas, rounds=1) for _ in range(2)]
    first, second = (engine.finish(run) for run in runs)
    assert first.ended_at is not None
    assert second.started_at is not None
    assert first.ended_at <= second.started_at
    assert Run.objects.filter(state__in=MEASURED).count() == 2


def test_a_cancelled_case_ends_under_load_and_the_other_continues(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    alice = team.alice
    project, shas = make_project(alice, tmp_path / "origin", [server()])
    make_definition(alice, project, source=with_a_long_case(DEFINITION))
    make_local_host(alice)
    run = make_run(alice, shas, rounds=1)
    long, short = cancel_the_long_case(engine, alice, run)
    run = engine.finish(run, timeout_s=60)

    assert run.state in MEASURED
    assert f"cancelled: {long[0].case.label}: by alice" in run.message
    assert {(each.state, each.message) for each in long} == {("skipped", "cancelled by alice")}
    assert {each.state for each in short} == {"measured"}
    host = Host.objects.get()
    (journal,) = (engine.data_dir / "hosts" / str(host.pk) / "jobs").glob("*/*/journal.jsonl")
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    done = {event["trial"] for event in events if event["event"] == "trial_done"}
    assert done == {str(each.pk) for each in short}
