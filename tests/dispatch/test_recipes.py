"""One build for all cases that want the same, and another for each that does not."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any
from uuid import uuid4

import pytest

from agents.hostagent.platform.topology import Core, Topology
from orchestrator.benchmarks.matrix import resolve
from orchestrator.benchmarks.spec import parse
from orchestrator.dispatch import unsupported_cases
from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.recipes import Recipe, resolve_recipe
from orchestrator.dispatch.rounds import build_round_plans
from orchestrator.fleet.selectors import find_latest_snapshot
from orchestrator.fleet.services import record_snapshot
from orchestrator.runs.models import Job, Trial
from tests.dispatch.support import THEIR_OHA, facts, leased
from tests.support.factories import Personas

SOURCE = dedent(
    """\
    version: 1
    title: Systems
    subject:
      env: {LEVEL: "{level}", MODE: release}
      ready: {path: /hello}
    load: {path: /hello, connections: 4, duration_s: 0.6, warmup_s: 0.2}
    matrix: {system: [axum, hyper, flask], level: [1, 2]}
    options:
      system:
        axum:
          requires: {cargo: "*"}
          subject: {build: [[cargo, build]], start: [axum, "{level}", "{port}"]}
        hyper:
          requires: {cargo: "*"}
          subject: {build: [[cargo, build]], start: [hyper, "{port}"]}
        flask:
          requires: {python3.11: "*"}
          subject:
            install: {files: [requirements.txt], steps: [[python3.11, -m, venv, "{installed}"]]}
            start: ["{installed}/bin/flask", "{port}"]
          services: {store: {start: [redis-server, --port, "{port}"], role: generator}}
          limits: {target: {cpus: 1}}
    """
)
CARGO = {"path": "/home/a/.cargo/bin/cargo", "version": "1.95.0", "beyond_path": True}
PYTHON = {"path": "/usr/bin/python3.11", "version": "3.11.2"}
FACTS = {**facts(oha=THEIR_OHA), "languages": {"cargo": CARGO, "python3.11": PYTHON}}


@pytest.fixture
def job(personas: Personas, tmp_path: Path) -> Job:
    return lease_job(personas, tmp_path)


def lease_job(personas: Personas, tmp_path: Path, rounds: int = 1) -> Job:
    """On two hosts that have all that it requires; of two commits."""
    job = leased(personas, tmp_path, SOURCE, rounds=rounds)
    for host in JobHosts(job).hosts:
        snapshot = record_snapshot(host=host, facts=FACTS)
        if host == job.host:
            job.snapshot = snapshot
    job.save(update_fields=["snapshot"])
    return job


def build_plan(job: Job) -> dict[str, Any]:
    plan: dict[str, Any] = json.loads(build_round_plans(job, JobHosts(job), ports={})["b"])
    return plan


def load_system(trial: dict[str, Any]) -> str:
    return str(Trial.objects.get(pk=trial["id"]).case.parameters["system"])


def test_cases_with_the_same_recipe_share_a_build(job: Job) -> None:
    plan = build_plan(job)
    trees = {(load_system(trial), trial["commit"]): trial["tree"] for trial in plan["trials"]}
    assert len(plan["trials"]) == 12
    assert len(set(trees.values())) == 4
    for sha in {sha for _, sha in trees}:
        assert trees["axum", sha] == trees["hyper", sha] != trees["flask", sha]
    assert {f"builds/{build['id']}" for build in plan["builds"]} == set(trees.values())
    labels = {build["label"] for build in plan["builds"]}
    assert labels == {"system axum, hyper", "system flask"}


def test_each_build_is_on_the_hosts_that_use_it(job: Job) -> None:
    on = {build["label"]: build["on"] for build in build_plan(job)["builds"]}
    assert on == {"system axum, hyper": ["a"], "system flask": ["a", "b"]}


def test_each_trial_has_the_services_and_limits_of_its_case(job: Job) -> None:
    for trial in build_plan(job)["trials"]:
        is_flask = load_system(trial) == "flask"
        assert len(trial["services"]) == is_flask
        assert (trial["path"] == {}) is is_flask
        assert trial["server"]["argv"][0] == {"flask": "{installed}/bin/flask"}.get(
            load_system(trial), load_system(trial)
        )
        assert trial["server"]["env"]["LEVEL"] in ("1", "2")


def test_programs_of_a_build_come_first_on_the_path(job: Job) -> None:
    plan = build_plan(job)
    paths = {build["label"]: build["path"] for build in plan["builds"]}
    assert paths == {"system axum, hyper": ["/home/a/.cargo/bin"], "system flask": []}
    of_axum = next(trial for trial in plan["trials"] if load_system(trial) == "axum")
    assert of_axum["path"] == {label: ["/home/a/.cargo/bin"] for label in "ab"}


def recipe(system: str = "flask", facts: dict[str, Any] = FACTS, **changes: str) -> Recipe:
    source = SOURCE
    for old, new in changes.items():
        source = source.replace(old, new)
    parameters = {"system": system, "level": 1}
    return resolve_recipe(resolve(parse(source), parameters), parameters, facts)


def key(recipe: Recipe) -> str:
    assert recipe.install is not None
    return str(recipe.install["key"])


def test_the_name_of_an_install_follows_its_recipe_and_programs() -> None:
    newer = {**FACTS, "languages": {"python3.11": {**PYTHON, "version": "3.11.9"}}}
    keys = [key(recipe()), key(recipe(release="debug")), key(recipe(facts=newer))]
    assert len({*keys}) == 3
    other = {**FACTS, "languages": {**FACTS["languages"], "cargo": None}}
    assert key(recipe(facts=other)) == key(recipe())


def test_a_variable_that_names_an_axis_is_for_the_server_only() -> None:
    assert recipe().env == {"MODE": "release"}


def lacking(job: Job, name: str) -> None:
    """The target says that it does not have the program."""
    assert job.host is not None
    changed_facts = {**FACTS, "languages": {**FACTS["languages"], name: None}}
    job.snapshot = record_snapshot(host=job.host, facts=changed_facts)


def unsupported(job: Job) -> dict[str, str]:
    trials = job.trials.filter(state="unsupported").select_related("case")
    return {str(trial.case.parameters["system"]): trial.message for trial in trials}


def test_cases_that_the_hosts_cannot_measure_are_marked(job: Job) -> None:
    lacking(job, "cargo")
    assert unsupported_cases.decide(job, JobHosts(job))
    assert set(unsupported(job)) == {"axum", "hyper"}
    assert unsupported(job)["axum"] == "one: it has no cargo"
    assert {load_system(trial) for trial in build_plan(job)["trials"]} == {"flask"}


def test_separate_cores_are_required_only_if_the_definition_says_so(
    personas: Personas, tmp_path: Path
) -> None:
    job = leased(personas, tmp_path, SOURCE + "too_few_cores: unsupported\n")
    for host in JobHosts(job).hosts:
        record_snapshot(host=host, facts=FACTS)
    job.snapshot = find_latest_snapshot(JobHosts(job).hosts[0])
    assert not unsupported_cases.decide(job, JobHosts(job))
    reason = unsupported(job)["axum"]
    assert reason.startswith("one: the agent may use 2 physical cores (CPUs 0-1), so none is kept")
    assert "too_few_cores: unsupported" in reason
    four = Topology(tuple(Core((cpu, cpu + 4)) for cpu in range(4))).as_json()
    for host in JobHosts(job).hosts:
        record_snapshot(host=host, facts={**FACTS, "threads": 8, "topology": four})
    job.snapshot = find_latest_snapshot(JobHosts(job).hosts[0])
    assert unsupported_cases.decide(job, JobHosts(job))
    assert unsupported(job) == {}


def test_the_plan_says_who_gets_cpus_and_the_host_chooses_them(job: Job) -> None:
    trials = {load_system(trial): trial for trial in build_plan(job)["trials"]}
    flask = trials["flask"]
    assert flask["shares"] == {
        "a": [{"name": "server", "cpus": 1}],
        "b": [{"name": "tool", "cpus": None}, {"name": "services", "cpus": None}],
    }
    assert flask["server"]["limits"]["share"] == "server"
    assert flask["services"][0]["limits"]["share"] == "services"
    assert (flask["tool"]["limits"]["share"], flask["tool"]["cpus"]) == ("tool", 1)
    assert trials["axum"]["tool"]["cpus"] == 2


def test_cases_with_limits_need_control_groups(job: Job) -> None:
    spec = parse(f"{SOURCE}limits: {{target: {{memory: 256 MiB}}, generator: {{cpu_quota: 1}}}}\n")
    hosts = JobHosts(job)
    cases = [trial.case for trial in job.trials.select_related("case")[:1]]
    lacking_groups = {
        **FACTS,
        "limits_available": ["cpus", "open_files"],
        "limits_problem": "nothing is delegated",
    }
    for label, name, limit in (("a", "one", "memory"), ("b", "two", "cpu_quota")):
        known = {"a": FACTS, "b": FACTS, label: lacking_groups}
        found = unsupported_cases.find_unsupported(spec, cases, known, hosts)
        why = f"{name}: it cannot enforce {limit}: nothing is delegated"
        assert found == {cases[0].pk: why}
    known = {"a": FACTS, "b": FACTS}
    assert unsupported_cases.find_unsupported(spec, cases, known, hosts) == {cases[0].pk: ""}


def test_a_network_is_emulated_on_one_host_that_can(
    personas: Personas, tmp_path: Path, job: Job
) -> None:
    spec = parse(f"{SOURCE}network: {{delay: 20 ms, rate: 10 Mbit/s}}\n")
    cases = [trial.case for trial in job.trials.select_related("case")[:1]]
    two = unsupported_cases.find_unsupported(spec, cases, {"a": FACTS, "b": FACTS}, JobHosts(job))
    assert "on one host only, and the job has one, two" in two[cases[0].pk]
    job.placements.update(host=job.host)
    one = JobHosts(job)
    for known, why in (
        ({}, "one: it cannot emulate delay and rate: check the host again"),
        ({"network_available": ["rate"], "network_problem": "no netem"}, "emulate delay: no netem"),
        ({"network_available": ["delay", "jitter", "loss", "rate"]}, ""),
    ):
        found = unsupported_cases.find_unsupported(spec, cases, {"a": {**FACTS, **known}}, one)
        assert why in found[cases[0].pk]
        assert bool(found[cases[0].pk]) == bool(why)


def test_another_attempt_checks_support_again(job: Job) -> None:
    lacking(job, "cargo")
    unsupported_cases.decide(job, JobHosts(job))
    lacking(job, "python3.11")
    assert unsupported_cases.decide(job, JobHosts(job))
    assert set(unsupported(job)) == {"flask"}
    assert job.trials.filter(state="planned").count() == 8
    assert not job.trials.filter(state="planned").exclude(message="").exists()


def test_hosts_that_support_no_case_are_reported(job: Job) -> None:
    assert job.host is not None
    job.snapshot = record_snapshot(host=job.host, facts={**FACTS, "languages": {}})
    assert not unsupported_cases.decide(job, JobHosts(job))
    assert set(unsupported(job)) == {"axum", "hyper", "flask"}


def test_several_builds_have_names_of_their_own_and_share_the_install(
    personas: Personas, tmp_path: Path
) -> None:
    job = lease_job(personas, tmp_path, rounds=4)
    kept = build_plan(job)
    job.run.builds = 3
    plans = {}
    for number in (1, 2, 3, 4):
        job.round = number
        plans[number] = build_plan(job)
    trees = {
        number: {(load_system(trial), trial["commit"]): trial["tree"] for trial in plan["trials"]}
        for number, plan in plans.items()
    }
    assert trees[1] == trees[2]
    assert trees[3] == trees[4]
    of_kept = {trial["tree"] for trial in kept["trials"]}
    assert not of_kept & {*trees[1].values(), *trees[3].values()}
    assert not {*trees[1].values()} & {*trees[3].values()}
    labels = {build["label"] for build in plans[3]["builds"]}
    assert labels == {"build 2 of 3; system axum, hyper", "build 2 of 3; system flask"}
    for plan in plans.values():
        keys = [build["install"] for build in plan["builds"] if build["install"]]
        assert keys == [build["install"] for build in kept["builds"] if build["install"]]
        built = {f"builds/{build['id']}" for build in plan["builds"]}
        assert built == {trial["tree"] for trial in plan["trials"]}


def test_builds_of_another_run_have_other_names() -> None:
    own = recipe("axum")
    names = {
        own.build_again(run, number).name("sha") for run in (uuid4(), uuid4()) for number in (1, 2)
    }
    assert len(names) == 4
    assert own.name("sha") not in names
