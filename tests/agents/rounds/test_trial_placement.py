"""The CPUs of a trial are chosen after tuning, and the siblings of its CPUs are observed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.monitoring.counter_deltas import ForeignProcess, sum_foreign_cpu_s
from agents.hostagent.paths import StepDir
from agents.hostagent.platform.linux.tuning import Tuning
from agents.hostagent.platform.topology import Core, Topology
from agents.hostagent.rounds import round_runner
from agents.hostagent.rounds.trial_placement import place_trials
from agents.hostagent.step.journal import Journal
from agents.hostagent.step.plan import Plan
from agents.hostagent.step.plan_parser import load_plan
from tests.agents.support import a_plan, a_server, a_step, a_tool, a_trial, limits

FOUR_CORES = Topology(tuple(Core((cpu, cpu + 4)) for cpu in range(4)))


def read_plan(folder: Path, server_cpus: int | None = None, **changes: Any) -> Plan:
    shares = [{"name": "server", "cpus": server_cpus}, {"name": "tool", "cpus": None}]
    trial = a_trial(
        "tools/fake",
        server=a_server(limits=limits(share="server")),
        tool=a_tool("tools/fake", limits=limits(share="tool"), cpus=4),
        prepare=[a_step("pass")],
        shares={"a": shares},
    )
    path = folder / "plan.json"
    path.write_text(json.dumps(a_plan(trial, **changes)))
    return load_plan(path, folder)


def test_all_processes_of_a_trial_get_the_cpus_of_their_share(tmp_path: Path) -> None:
    (trial,) = place_trials(read_plan(tmp_path), FOUR_CORES).trials
    assert trial.server.limits.cpus == trial.prepare[0].limits.cpus == (1, 5)
    assert trial.tool.limits.cpus == (2, 3, 6, 7)
    assert trial.placement.system == (0, 4)


def test_a_neighbour_on_a_sibling_counts_as_interference(tmp_path: Path) -> None:
    """CPU 5 is idle: it is the sibling of the only CPU of the server."""
    (trial,) = place_trials(read_plan(tmp_path, server_cpus=1), FOUR_CORES).trials
    assert trial.server.limits.cpus == (1,)
    observed = trial.cpus_on("a", with_tool=True)
    hogs = [ForeignProcess("hog", 0.9, frozenset({5})), ForeignProcess("log", 0.5, frozenset({4}))]
    assert sum_foreign_cpu_s(hogs, observed) == 0.9


def test_a_load_tool_with_fewer_cpus_than_threads_reports_its_cpus(tmp_path: Path) -> None:
    (trial,) = place_trials(read_plan(tmp_path), FOUR_CORES.without_smt()).trials
    assert (trial.tool.cpus, trial.tool.limits.cpus, trial.tool_cpus) == (4, (2, 3), 2)


def test_cpus_are_chosen_after_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SMT that tuning turns off takes CPUs 4 to 7 away."""
    now, placed = [FOUR_CORES], []

    @contextmanager
    def turn_smt_off(*_given: object) -> Iterator[None]:
        now.append(FOUR_CORES.without_smt())
        yield

    monkeypatch.setattr(Tuning, "apply", turn_smt_off)
    monkeypatch.setattr(round_runner, "read_topology", lambda: now[-1])
    monkeypatch.setattr(round_runner, "_run_plan", lambda _step, plan, *_rest: placed.append(plan))
    for name in ("adopt_orphans", "kill_orphans", "kill_descendants"):
        monkeypatch.setattr(round_runner, name, lambda *_given: None)
    step = StepDir(tmp_path, "j1", "a1-r1")
    step.path.mkdir(parents=True)
    plan = read_plan(tmp_path, tuning={"smt": "off"})
    round_runner.run_round(step, plan, Journal(step.journal))
    assert placed[0].trials[0].tool.limits.cpus == (2, 3)
