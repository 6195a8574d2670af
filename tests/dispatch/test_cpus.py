"""CPUs of a host are divided among the processes of a trial."""

import pytest

from orchestrator.core.errors import HostSetupError
from orchestrator.dispatch.cpus import Share, assign_cpus

SERVER, TOOL = Share(name="server"), Share(name="tool")


@pytest.mark.parametrize(
    ("logical", "server", "tool"),
    [
        (None, None, None),
        (1, None, None),
        (2, [0], [1]),
        (3, [1], [2]),
        (8, [1, 2, 3], [4, 5, 6, 7]),
    ],
)
def test_cpus_are_divided_between_server_and_load_tool(
    logical: int | None, server: list[int] | None, tool: list[int] | None
) -> None:
    assert assign_cpus(logical, [SERVER, TOOL], pin=True) == {"server": server, "tool": tool}


def test_a_process_alone_on_a_host_is_not_pinned() -> None:
    assert assign_cpus(8, [SERVER], pin=True) == {"server": None}


def test_nothing_is_pinned_if_the_definition_disables_it() -> None:
    assert assign_cpus(8, [SERVER, TOOL], pin=False) == {"server": None, "tool": None}


def test_cpu_counts_of_the_definition_are_kept_and_the_rest_shared() -> None:
    shares = [Share(name="server", cpus=1), TOOL, Share(name="service:redis", cpus=2)]
    cpus = assign_cpus(6, shares, pin=True)
    assert cpus == {"server": [1], "service:redis": [2, 3], "tool": [4, 5]}


def test_cpu_0_is_used_only_if_there_are_too_few_cpus() -> None:
    shares = [Share(name="server", cpus=1), Share(name="tool", cpus=1)]
    assert assign_cpus(2, shares, pin=True) == {"server": [0], "tool": [1]}
    assert assign_cpus(4, shares, pin=True) == {"server": [1], "tool": [2]}


@pytest.mark.parametrize("logical", [None, 1, 3])
def test_more_cpus_than_the_host_has_are_refused(logical: int | None) -> None:
    with pytest.raises(HostSetupError, match="4 CPUs"):
        assign_cpus(logical, [Share(name="server", cpus=2), Share(name="tool", cpus=2)], pin=True)
