"""CPUs of a host are divided among the processes of a trial."""

import pytest

from orchestrator.core.errors import HostSetupError
from orchestrator.dispatch.cpus import Share, allot

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
def test_it_divides_them_between_server_and_load_tool(
    logical: int | None, server: list[int] | None, tool: list[int] | None
) -> None:
    assert allot(logical, [SERVER, TOOL], pin=True) == {"server": server, "tool": tool}


def test_it_leaves_a_process_that_has_the_host_to_itself_alone() -> None:
    assert allot(8, [SERVER], pin=True) == {"server": None}


def test_it_pins_nothing_where_the_definition_does_not_want_it() -> None:
    assert allot(8, [SERVER, TOOL], pin=False) == {"server": None, "tool": None}


def test_it_keeps_the_numbers_of_the_definition_and_shares_the_rest() -> None:
    shares = [Share(name="server", cpus=1), TOOL, Share(name="service:redis", cpus=2)]
    found = allot(6, shares, pin=True)
    assert found == {"server": [1], "service:redis": [2, 3], "tool": [4, 5]}


def test_it_uses_cpu_0_only_where_there_are_too_few() -> None:
    shares = [Share(name="server", cpus=1), Share(name="tool", cpus=1)]
    assert allot(2, shares, pin=True) == {"server": [0], "tool": [1]}
    assert allot(4, shares, pin=True) == {"server": [1], "tool": [2]}


@pytest.mark.parametrize("logical", [None, 1, 3])
def test_it_refuses_more_than_the_host_has(logical: int | None) -> None:
    with pytest.raises(HostSetupError, match="4 CPUs"):
        allot(logical, [Share(name="server", cpus=2), Share(name="tool", cpus=2)], pin=True)
