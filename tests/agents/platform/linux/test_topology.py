"""Topologies of machines that we do not have, as `grep -r . /sys/devices/system/cpu` shows them.

`machines/*.txt` are golden files: one line for each file, its path and its content.
"""

from pathlib import Path

import pytest

from agents.hostagent.platform.linux.topology import read_topology
from agents.hostagent.platform.placement import Placement, Share, place
from agents.hostagent.platform.topology import Topology, format_cpus, parse_topology

MACHINES = Path(__file__).with_name("machines")


def read_machine(name: str, folder: Path) -> Topology:
    for line in (MACHINES / f"{name}.txt").read_text().splitlines():
        path, _, content = line.partition(":")
        if not line.startswith("#"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(f"{content}\n")
    topology = read_topology(folder)
    assert topology is not None
    return topology


def place_trial(topology: Topology, **cpus: int | None) -> Placement:
    return place(topology, [Share(name, number) for name, number in cpus.items()])


@pytest.mark.parametrize(
    ("machine", "server", "tool", "system"),
    [
        ("desktop", "1-3,9-11", "4-7,12-15", "0,8"),
        ("desktop-smt-off", "1-3", "4-7", "0"),
        ("desktop-offline", "2-4,11-12", "5-7,9,13-15", "0,8"),
        ("desktop-adjacent", "2-7", "8-15", "0-1"),
        ("two-sockets", "1,3,5,7,17,19,21,23", "9,11,13,15,25,27,29,31", "0,16"),
        ("hybrid-laptop", "2-3", "4-7", "0-1"),
        ("big-little", "4-5", "6-7", "0"),
        ("thinkpad", "1,5", "2-3,6-7", "0,4"),
        ("no-topology", "1", "2-3", "0"),
    ],
)
def test_server_and_load_tool_get_whole_cores_of_one_type_and_node(
    machine: str, server: str, tool: str, system: str, tmp_path: Path
) -> None:
    topology = read_machine(machine, tmp_path)
    placement = place_trial(topology, server=None, tool=None)
    got = [placement.cpus["server"], placement.cpus["tool"], placement.system]
    assert [format_cpus(cpus or ()) for cpus in got] == [server, tool, system]
    assert (placement.shared, placement.note) == ((), "")
    assert placement.problem == topology.no_siblings
    assert parse_topology(topology.as_json()) == topology


def test_the_threads_of_the_only_core_are_shared_and_the_placement_says_so(tmp_path: Path) -> None:
    placement = place_trial(read_machine("cloud", tmp_path), server=None, tool=None)
    assert placement.cpus == {"server": (0,), "tool": (1,)}
    assert placement.shared == (("server", "tool"),)
    assert "1 physical core (CPUs 0-1), so these share cores: server, tool" in placement.problem


def test_a_container_uses_its_cpus_and_observes_the_sibling_outside(tmp_path: Path) -> None:
    """CPU 7 is the sibling of CPU 6 and belongs to others."""
    topology = read_machine("container", tmp_path)
    placement = place_trial(topology, server=None, tool=None)
    assert placement.cpus == {"server": (4, 5), "tool": (6,)}
    assert placement.siblings == (7,)
    assert "2 physical cores (CPUs 4-6), so none is kept" in placement.problem


def test_isolated_cpus_are_reported_and_left_alone(tmp_path: Path) -> None:
    """The kernel does not move threads between them, so a pool of threads would stay on one."""
    topology = read_machine("isolated", tmp_path)
    assert topology.isolated == (2, 3, 6, 7)
    placement = place_trial(topology, server=None, tool=None)
    assert placement.cpus == {"server": (0, 4), "tool": (1, 5)}


def test_the_types_nodes_and_frequency_domains_of_cores_are_reported(tmp_path: Path) -> None:
    hybrid = read_machine("hybrid-laptop", tmp_path / "hybrid")
    assert hybrid.kinds == ("performance", "efficiency")
    assert [core.kind for core in hybrid.cores] == 4 * ["performance"] + 8 * ["efficiency"]
    arm = read_machine("big-little", tmp_path / "arm")
    assert arm.kinds == ("capacity 1024", "capacity 530")
    assert [core.clock for core in arm.cores] == [0, 0, 0, 0, 4, 4, 6, 6]
    sockets = read_machine("two-sockets", tmp_path / "sockets")
    assert [core.node for core in sockets.cores] == 8 * [0, 1]
    assert [core.package for core in sockets.cores] == 8 * [0, 1]
    offline = read_machine("desktop-offline", tmp_path / "offline")
    assert offline.offline == (1, 10)


def test_a_number_of_cpus_takes_whole_cores_and_leaves_their_siblings_idle(tmp_path: Path) -> None:
    placement = place_trial(read_machine("desktop", tmp_path), server=3, tool=1, db=None)
    assert placement.cpus == {"server": (1, 2, 9), "tool": (3,), "db": (4, 5, 6, 7, 12, 13, 14, 15)}
    assert placement.siblings == (10, 11)


def test_cores_of_several_nodes_are_used_only_if_one_has_too_few(tmp_path: Path) -> None:
    topology = read_machine("two-sockets", tmp_path)
    assert place_trial(topology, server=14, tool=2).note == ""
    placement = place_trial(topology, server=20, tool=4)
    assert placement.note == "cores of several types or NUMA nodes: server"
    assert placement.system == (0, 16)


def test_smt_that_a_round_will_turn_off_is_predicted(tmp_path: Path) -> None:
    before = read_machine("desktop", tmp_path / "on").without_smt()
    after = read_machine("desktop-smt-off", tmp_path / "off")
    assert [core.cpus for core in before.cores] == [core.cpus for core in after.cores]


def test_a_machine_that_lists_no_cpu_has_no_topology(tmp_path: Path) -> None:
    assert read_topology(tmp_path) is None
