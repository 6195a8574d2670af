"""Prepare steps and files in the plan of a round."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.benchmarks.secret_names import list_secret_names
from orchestrator.benchmarks.spec import parse
from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.processes import build_prepare_steps
from orchestrator.dispatch.rounds import SILENCE_S, build_round_plans, load_silence_s
from orchestrator.dispatch.tls import needs_tls
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_snapshot
from orchestrator.runs.models import Job
from tests.dispatch.support import THEIR_OHA, facts, leased
from tests.support.factories import DEFINITION, Personas

SOURCE = DEFINITION.replace(
    "subject:\n",
    'subject:\n  env: {DB: "{db_addresses}", PORT: "{port}", N: "{connections}", MODE: fast}\n'
    "  working_dir: app\n",
).replace("connections: [4]", "connections: [4, 8]") + (
    """\
services: {db: {start: [database, "{bind}:{port}"]}}
files: {seed.sql: "INSERT", other.sql: "INSERT"}
prepare:
  - {run: [generate, "{connections}"], after: build, each: job, timeout_s: 400}
  - {run: [migrate, "{files}/seed.sql"], env: {MODE: slow}, each: commit, timeout_s: 100}
  - {run: [warm], after: server, working_dir: tools, timeout_s: 3}
"""
)


@pytest.fixture
def job(personas: Personas, tmp_path: Path) -> Job:
    return leased(personas, tmp_path, SOURCE)


def build_plan(job: Job, label: str = "b") -> dict[str, Any]:
    plan: dict[str, Any] = json.loads(build_round_plans(job, JobHosts(job), ports={})[label])
    return plan


def test_steps_have_the_environment_of_the_subject_as_far_as_it_is_known(job: Job) -> None:
    trial = next(trial for trial in build_plan(job)["trials"] if trial["server"]["env"]["N"] == "8")
    generate, migrate, warm = trial["prepare"]
    assert generate["argv"] == ["generate", "8"]
    # A variable that names an axis is for steps of each trial only.
    assert generate["env"] == {"MODE": "fast"}
    assert migrate["env"] == {"DB": "{db_addresses}", "MODE": "slow"}
    assert warm["env"] == {"DB": "{db_addresses}", "PORT": "{port}", "N": "8", "MODE": "fast"}
    assert [each["working_dir"] for each in trial["prepare"]] == ["app", "app", "tools"]


def test_secrets_and_certificates_of_steps_are_known() -> None:
    plain = parse(SOURCE)
    assert (list_secret_names([plain]), needs_tls(plain)) == ([], False)
    spec = parse(
        SOURCE.replace("env: {MODE: slow}", "env: {TOKEN: {secret: SEED_TOKEN}}").replace(
            "run: [warm]", 'run: [warm, "{ca}"]'
        )
    )
    assert (list_secret_names([spec]), needs_tls(spec)) == (["SEED_TOKEN"], True)
    steps = build_prepare_steps(spec, {"connections": 4})
    assert steps[1]["env"]["TOKEN"] == {"secret": "SEED_TOKEN"}


def test_steps_of_a_job_are_equal_unless_they_depend_on_the_case(job: Job) -> None:
    keys = [[step["key"] for step in trial["prepare"]] for trial in build_plan(job)["trials"]]
    generate, migrate, warm = (set(each) for each in zip(*keys, strict=True))
    assert (len(generate), len(migrate), len(warm)) == (2, 1, 2)


def test_each_text_is_in_the_plan_once(job: Job) -> None:
    plan = build_plan(job)
    assert list(plan["texts"].values()) == ["INSERT"]
    (name,) = plan["texts"]
    for trial in plan["trials"]:
        assert trial["files"] == {"files/seed.sql": name, "files/other.sql": name}


def test_time_limits_extend_the_estimate_and_the_time_of_silence(job: Job) -> None:
    trials = list(job.trials.all())
    # Two cases have their own data of the job, and share those of each of the two commits.
    once_s = 2 * 400 + 2 * 100
    assert job.expected_s == pytest.approx(once_s + sum(trial.expected_s for trial in trials))
    plan = build_plan(job)
    assert plan["silence_s"] == pytest.approx(3 * (trials[0].expected_s + 500))
    assert plan["silence_s"] > SILENCE_S
    (expected_s,) = {trial["expected_s"] for trial in plan["trials"]}
    assert expected_s == pytest.approx(0.8)


def test_folders_of_a_host_come_first_on_the_path_of_its_builds_and_processes(job: Job) -> None:
    host = Host.objects.get(name="one")
    host.env = {"PATH": "/opt/node/bin:/opt/jdk/bin", "A": "b"}
    host.save()
    Job.objects.update(snapshot=record_snapshot(host=host, facts=facts(oha=THEIR_OHA)))
    plan = build_plan(Job.objects.get(), "a")
    folders = ["/opt/node/bin", "/opt/jdk/bin"]
    assert plan["env"] == {"A": "b"}
    assert [trial["path"] for trial in plan["trials"]] == [{"a": folders}] * 4
    assert [build["path"] for build in plan["builds"] if build["on"] == ["a"]] == [folders] * 2


@pytest.mark.parametrize("steps", [False, True])
def test_agent_and_engine_have_the_same_limit_of_silence(
    personas: Personas, tmp_path: Path, steps: bool
) -> None:
    source = SOURCE.replace("connections: [4, 8]", "connections: [4]") if steps else DEFINITION
    source = source.replace("duration_s: 0.6", "duration_s: 900\n  rate: 10")
    job = leased(personas, tmp_path, source, commits=1)
    limit_s = build_plan(job)["silence_s"]
    assert limit_s == load_silence_s(job) > 3 * 900
