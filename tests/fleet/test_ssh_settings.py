"""What is accepted as the way to a host."""

from typing import Any

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.ssh_settings import check_connection, check_jump_hosts, strip_brackets
from orchestrator.transport.keys import generate_key

KEY = " ".join(generate_key().public_openssh.split()[:2])


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("[2001:db8::7]", "2001:db8::7"),
        ("2001:db8::7", "2001:db8::7"),
        ("[host]", "[host]"),
        ("192.0.2.7", "192.0.2.7"),
    ],
)
def test_an_address_may_be_in_brackets(text: str, address: str) -> None:
    assert strip_brackets(text) == address


@pytest.mark.parametrize("address", ["2001:db8::7", "::2", "192.0.2.7", "host_1.example"])
def test_names_and_addresses_are_accepted(address: str, settings: Any) -> None:
    settings.HOST_NETWORKS = []
    check_connection(address, 22, "ada", ".pitwall", "python3")


@pytest.mark.parametrize(
    "address",
    ["", "-oProxyCommand=x", "a b", "[::2]", "host:22", "2001:db8::7::", "::1", "fe80::1"],
)
def test_other_addresses_are_refused(address: str, settings: Any) -> None:
    settings.HOST_NETWORKS = []
    with pytest.raises(InvalidRequestError) as caught:
        check_connection(address, 22, "ada", ".pitwall", "python3")
    assert caught.value.field == "address"


def test_jump_hosts_are_stored_in_one_form(settings: Any) -> None:
    settings.HOST_NETWORKS = []
    lines = ["", f" ada@bastion  {KEY} a comment", f"bob@[2001:db8::7]:2222 {KEY}"]
    assert check_jump_hosts(lines) == [
        f"ada@bastion:22 {KEY}",
        f"bob@[2001:db8::7]:2222 {KEY}",
    ]


@pytest.mark.parametrize(
    ("lines", "networks", "words"),
    [
        ([f"ada@b {KEY}", "nonsense"], [], "line 2: expected a line such as 'user@bastion"),
        ([f"ada@b {KEY}", f"ada@127.0.0.1 {KEY}"], [], "line 2: Hosts may not be at 127.0.0.1"),
        ([f"ada@127.0.0.1 {KEY}"], [], "line 1: Hosts may not be at 127.0.0.1"),
        ([f"ada@10.7.0.1 {KEY}", f"ada@inner {KEY}"], ["10.7.0.0/16"], "line 2: behind a jump"),
        ([f"ada@b{n} {KEY}" for n in range(4)], [], "at most 3 jump hosts, got 4"),
    ],
)
def test_other_jump_hosts_are_refused_with_their_line(
    lines: list[str], networks: list[str], words: str, settings: Any
) -> None:
    settings.HOST_NETWORKS = networks
    with pytest.raises(InvalidRequestError) as caught:
        check_jump_hosts(lines)
    assert str(caught.value).startswith(words)
    assert caught.value.field == "jump_hosts"
