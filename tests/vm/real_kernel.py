"""What needs a kernel with cgroup v2, systemd, SMT and reboots: on a virtual machine.

`make vm-test` runs this file. Other test runs do not collect it.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from orchestrator.fleet.host_settings import set_host_settings
from orchestrator.fleet.models import CheckOutcome
from orchestrator.fleet.services import (
    NewHost,
    add_credential,
    add_host,
    confirm_host_key,
    save_profile,
)
from orchestrator.loadtools.emulated_network import EmulatedNetwork
from orchestrator.loadtools.network_checks import find_differences
from orchestrator.measurements.readings import load_values
from orchestrator.runs.models import Trial
from orchestrator.runs.states import COUNTED_VALIDITIES
from orchestrator.runs.wait_reasons import describe_wait
from tests.agents.support import limits
from tests.support.engine import Engine, assert_measured, check_now, running_engine, server
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_definition,
    make_personas,
    make_project,
    make_run,
)
from tests.vm.agent import MachineAgent
from tests.vm.machine import Machine, build_script

MB = 1 << 20
#: The machine is emulated and slow: it needs some milliseconds for a round trip.
NETWORKS = (
    EmulatedNetwork(delay_s=0.2, loss=0.02, rate_bps=4e6),
    EmulatedNetwork(delay_s=0.4, jitter_s=0.2, loss=0.01),
)
ATTEMPTS = 4
EMULATE = """
import json
from hostagent.network.emulation import emulate
from hostagent.step.plan import Network
with emulate(Network(**{network})) as emulated:
    print(json.dumps(emulated.as_json()))
"""
ALL_LIMITS = {"cpus", "cpu_quota", "memory_bytes", "open_files"}
GROUPS = "/sys/fs/cgroup/user.slice/user-$(id -u pitwall).slice/user@$(id -u pitwall).service"
#: An emulated machine is slow: Python starts in a second.
ENGINE_TIMEOUT_S = 400
#: Two round trips; the machine itself adds some milliseconds.
DELAYS = """\
version: 1
title: Delays
subject:
  start: ["{python}", server.py, --bind, "{bind}", --port, "{port}"]
  ready: {path: /, timeout_s: 60}
load: {path: /, connections: 2, duration_s: 10, warmup_s: 3}
network: {delay: "{delay_ms} ms"}
matrix: {delay_ms: [300, 600]}
rounds: 3
"""
LEAK = "held = []\n    while True: held.append(b'x' * (1 << 20)); time.sleep(0.005)"


def test_the_setup_runs_twice_and_changes_nothing_more(machine: Machine, setup_output: str) -> None:
    assert "created: account pitwall" in setup_output
    second = machine.run(build_script(machine))
    lines = second.splitlines()
    assert lines[-1].startswith("Done")
    assert {line.partition(":")[0] for line in lines[:-1]} == {"unchanged"}


def test_the_setup_grants_each_part(agent: MachineAgent) -> None:
    facts = agent.gather_facts()
    assert (facts["limits_mechanism"], facts.get("limits_problem")) == ("cgroup2", None)
    assert set(facts["limits_available"]) == ALL_LIMITS
    assert "smt" in facts["tuning_available"]
    assert facts["limits_open_files"] == 65536
    assert agent.machine.try_running("echo 0 > /proc/sys/vm/swappiness", "pitwall").exit_status


def test_root_gets_a_delegated_scope_too(machine: Machine) -> None:
    facts = MachineAgent(machine, "root").gather_facts()
    assert (facts["limits_mechanism"], facts.get("limits_problem")) == ("cgroup2", None)


def test_networks_are_emulated_as_asked(machine: Machine) -> None:
    agent = MachineAgent(machine, "root")
    assert set(agent.gather_facts()["network_available"]) == {"delay", "jitter", "loss", "rate"}
    for requested in NETWORKS:
        differences: list[list[str]] = []
        # Other work on the real machine only makes the emulated one slower.
        while len(differences) < ATTEMPTS and [] not in differences:
            measured = agent.run_module(EMULATE.format(network=requested.as_dict()))
            print(requested, measured)
            differences.append(list(find_differences(requested, measured)))
        assert [] in differences
    assert "load" not in machine.run("ls /sys/class/net").split()


def test_a_login_without_the_privilege_emulates_no_network(agent: MachineAgent) -> None:
    facts = agent.gather_facts()
    assert facts["network_available"] == []
    assert "CAP_NET_ADMIN" in facts["network_problem"]


def test_limits_hold_while_systemd_reloads_and_others_log_in(agent: MachineAgent) -> None:
    wanted = {"cpu_quota": 0.5, "memory_bytes": 128 * MB, "open_files": 512}
    seen: dict[str, Any] = {}

    def disturb() -> None:
        agent.machine.run("systemctl daemon-reload")
        agent.machine.run("true", "pitwall")
        folders = f"{GROUPS}/pitwall.slice/pitwall-*.scope/pitwall-*"
        script = f"cd {GROUPS}; for each in {folders}; do echo $(cat $each/cpuset.cpus.effective) "
        script += "$(cat $each/memory.max) $(cat $each/pids.max) $(wc -l < $each/io.stat); done"
        seen["groups"] = [line.split()[:3] for line in agent.machine.run(script).splitlines()]

    done = agent.run_trial(
        disturb,
        limits=limits(share="server", **wanted),
        tool=limits(share="tool"),
        shares=[{"name": "server", "cpus": 1}, {"name": "tool", "cpus": None}],
    )
    result = done.read_result()
    applied = result["limits"]
    assert {name: applied["server"][name] for name in wanted} == wanted
    # CPUs 0 and 1 are the threads of a core, and 2 and 3 those of another.
    assert result["placement"]["a"]["cpus"] == {"server": [0], "tool": [2, 3]}
    assert (applied["server"]["cpus"], applied["tool"]["cpus"]) == ([0], [2, 3])
    assert applied["server"]["mechanism"] == applied["tool"]["mechanism"] == "cgroup2"
    for each in applied.values():
        assert (each["refused"], each["changed"], each["oom_kills"]) == ({}, {}, 0)
    assert applied["server"]["peak_memory_bytes"] > MB
    # The agent, the server and the load tool have a group each.
    assert sorted(seen["groups"]) == [
        ["0", str(128 * MB), "16384"],
        ["0-3", "max", "max"],
        ["2-3", "max", "16384"],
    ]


def test_a_limit_that_is_lifted_under_load_is_reported(agent: MachineAgent) -> None:
    def lift() -> None:
        scope = f"{GROUPS}/pitwall.slice/pitwall-*.scope"
        agent.machine.run(
            f"grep -l {64 * MB} {scope}/*/memory.max | while read f; do echo max > $f; done"
        )

    done = agent.run_trial(lift, limits=limits(memory_bytes=64 * MB))
    changed = done.read_result()["limits"]["server"]["changed"]
    assert changed == {"memory_bytes": f"it was {64 * MB} before the load and None after it"}


def test_the_memory_limit_ends_the_server_only(agent: MachineAgent) -> None:
    done = agent.run_trial(agent.await_server_end, extra=LEAK, limits=limits(memory_bytes=64 * MB))
    failed = done.only("trial_failed")
    assert failed["code"] == "server_died"
    assert "out of memory, processes of server that it ended: 1" in failed["output"]
    assert done.only("round_done")


def test_the_kernel_would_end_the_server_before_the_supervisor(agent: MachineAgent) -> None:
    seen: dict[str, set[int]] = {}

    def look() -> None:
        for name in ("server", "agents"):
            pattern = f"{name}[./]"
            script = f"for each in $(grep -la '{pattern}' /proc/[0-9]*/cmdline); do "
            script += "cat ${each%cmdline}oom_score_adj; done 2>/dev/null"
            seen[name] = set(map(int, agent.machine.run(script).split()))

    done = agent.run_trial(look)
    assert done.only("round_done")
    assert min(seen["server"]) >= 800
    assert min(seen["agents"]) < 800


def test_smt_is_off_during_a_round_and_on_after_it(agent: MachineAgent) -> None:
    seen = {}

    def look() -> None:
        seen["online"] = agent.machine.run("cat /sys/devices/system/cpu/online")

    done = agent.run_trial(
        look,
        limits=limits(share="server"),
        shares=[{"name": "server", "cpus": None}, {"name": "tool", "cpus": None}],
        tuning={"smt": "off"},
    )
    # One thread of each core remains.
    assert seen["online"] == "0,2"
    assert done.only("tuned")["applied"] == {"smt": "off"}
    applied = done.read_result()["limits"]
    assert (applied["server"]["cpus"], applied["server"]["changed"]) == ([0], {})
    assert agent.machine.run("cat /sys/devices/system/cpu/online") == "0-3"


def test_no_group_is_left(agent: MachineAgent) -> None:
    script = f"ls -d {GROUPS}/pitwall.slice/pitwall-*.scope 2>/dev/null || echo none"
    assert agent.machine.run(script) == "none"
    assert agent.machine.run("ls -d /sys/fs/cgroup/pitwall.slice/*.scope || echo none") == "none"


@pytest.fixture
def team(transactional_db: None) -> Personas:
    return make_personas()


@pytest.fixture
def engine(team: Personas, tmp_path: Path) -> Iterator[Engine]:
    with running_engine(tmp_path) as running:
        yield running


def test_a_reboot_in_mid_trial_makes_it_void_and_the_job_continues(
    machine: Machine, agent: MachineAgent, engine: Engine, team: Personas, tmp_path: Path
) -> None:
    source = DEFINITION.replace("duration_s: 0.6", "duration_s: 40")
    source = source.replace("rounds: 5", "rounds: 1\nlimits: {target: {memory: 200 MiB}}")
    project, shas = make_project(team.alice, tmp_path / "origin", [server(), server(start="#")])
    make_definition(team.alice, project, source=source)
    host_id = add_machine(machine, team)
    steps = check_now(member=team.alice, host_id=host_id, timeout_s=ENGINE_TIMEOUT_S)
    outcomes = {step.value: check.outcome for step, check in steps.rows if check}
    assert outcomes["limits"] == CheckOutcome.PASSED, outcomes
    boot = machine.read_boot_id()
    run = make_run(team.alice, shas[:1], hosts=("vm",), rounds=1)
    job = run.jobs.get()

    def is_under_load() -> bool:
        job.refresh_from_db()
        return job.phase == "measuring"

    try:
        engine.wait_for(is_under_load, timeout_s=ENGINE_TIMEOUT_S)
    except AssertionError:
        pytest.fail(f"the job is {job.state} {job.phase}: {describe_wait(job) or job.message}")
    reset_at = time.time()
    machine.reset()
    machine.await_boot()
    assert machine.read_boot_id() != boot
    run = engine.finish(run, timeout_s=ENGINE_TIMEOUT_S)
    assert_measured(run)
    trial = Trial.objects.get(job__run=run)
    assert trial.state == "measured"
    assert trial.started_at.timestamp() > reset_at
    applied = trial.provenance["limits"]
    assert applied["server"]["memory_bytes"] == 200 * MB
    # CPUs 0 and 1 are the threads of a core, and 2 and 3.
    server_cores, tool_cores = ({cpu // 2 for cpu in applied[each]["cpus"]} for each in applied)
    assert server_cores.isdisjoint(tool_cores), applied


def test_commits_are_measured_over_emulated_networks(
    machine: Machine, engine: Engine, team: Personas, tmp_path: Path
) -> None:
    project, shas = make_project(team.alice, tmp_path / "origin", [server()])
    make_definition(team.alice, project, source=DELAYS)
    host_id = add_machine(machine, team, login="root")
    set_host_settings(member=team.alice, host_id=host_id, is_shared=True)
    steps = check_now(member=team.alice, host_id=host_id, timeout_s=ENGINE_TIMEOUT_S)
    outcomes = {step.value: check.outcome for step, check in steps.rows if check}
    assert CheckOutcome.FAILED not in outcomes.values(), outcomes
    run = make_run(team.alice, shas, hosts=("vm",))
    run = engine.finish(run, timeout_s=2 * ENGINE_TIMEOUT_S)
    assert_measured(run)
    p50_ms: dict[int, list[float]] = {}
    for trial in Trial.objects.filter(job__run=run, validity__in=COUNTED_VALIDITIES):
        delay_ms = trial.case.parameters["delay_ms"]
        measured_s = trial.provenance["network"]["measured"]["round_trip_s"]
        assert measured_s == pytest.approx(delay_ms / 1000, rel=0.05)
        values = load_values([trial.pk])[trial.pk]
        p50_ms.setdefault(delay_ms, []).append(1000 * values["latency.p50"])
    print({trial.position: trial.reasons for trial in Trial.objects.filter(job__run=run)}, p50_ms)
    added_ms = min(p50_ms[600]) - min(p50_ms[300])
    assert added_ms == pytest.approx(300, rel=0.1)
    assert "load" not in machine.run("ls /sys/class/net").split()


def add_machine(machine: Machine, team: Personas, *, login: str = "pitwall") -> UUID:
    save_profile(member=team.alice, slug="vm", name="Virtual machine")
    credential = add_credential(
        member=team.alice, name="vm", private_key=machine.image.key.private_openssh
    )
    new = NewHost(
        name="vm",
        profile_slug="vm",
        address="127.0.0.1",
        port=machine.port,
        login=login,
        credential_id=credential.pk,
        work_dir="measured",
    )
    host, shown = add_host(member=team.alice, new=new)
    confirm_host_key(member=team.alice, host_id=host.pk, host_key=shown.line)
    return host.pk


def test_undo_removes_the_account_and_its_rights(machine: Machine) -> None:
    machine.run(build_script(machine), "root", "undo")
    assert machine.run("id pitwall 2>/dev/null || echo none") == "none"
    left = "ls -d /etc/systemd/system/user@*.d /etc/tmpfiles.d/pitwall.conf /var/lib/pitwall-setup"
    assert machine.run(f"{left} /etc/security/limits.d/pitwall.conf 2>/dev/null || true") == ""
    assert machine.run("stat -c '%a %G' /sys/devices/system/cpu/smt/control") == "644 root"
