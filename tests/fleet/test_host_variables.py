"""The environment variables of a host: what is refused, and the epoch that they begin."""

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.host_settings import set_host_settings
from orchestrator.fleet.host_variables import (
    check_variables,
    format_variables,
    list_folders,
    parse_variables,
    select_plain_variables,
)
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_snapshot
from tests.support.factories import Personas, make_local_host

PROXY = {"http_proxy": "http://proxy:3128", "NO_PROXY": "localhost,a=b"}


def test_lines_of_variables_are_parsed_and_formatted() -> None:
    text = "http_proxy=http://proxy:3128\n\n  NO_PROXY=localhost,a=b  \n"
    assert parse_variables(text) == PROXY
    assert parse_variables(format_variables(PROXY)) == PROXY
    with pytest.raises(InvalidRequestError, match="line 2: expected NAME=value, got 'x'"):
        parse_variables("a=b\nx")


def test_all_faults_are_reported_with_their_names() -> None:
    wrong = {
        "1A": "x",
        "PATH": "/bin:opt/node",
        "PITWALL_STEP": "x",
        "OK": "y",
        "B": "a\nb",
        "C": "\0",
    }
    with pytest.raises(InvalidRequestError) as caught:
        check_variables(wrong)
    assert [field for field, _ in caught.value.faults] == [
        "env.1A", "env.PATH", "env.PITWALL_STEP", "env.B", "env.C",
    ]  # fmt: skip
    assert caught.value.field == "env"
    with pytest.raises(InvalidRequestError, match="at most 50 variables, got 51"):
        check_variables({f"A{number}": "" for number in range(51)})
    assert list(check_variables(PROXY)) == ["NO_PROXY", "http_proxy"]


@pytest.mark.parametrize(
    "value", ["", "bin", "/opt/../bin", "/opt/node/bin:", "/a b", "/$HOME", "~/bin", "/a/.", "/"]
)
def test_folders_of_programs_are_plain_and_absolute(value: str) -> None:
    with pytest.raises(InvalidRequestError, match="expected folders such as /opt/node/bin"):
        check_variables({"PATH": value})


def test_folders_of_programs_are_no_plain_variable() -> None:
    variables = check_variables({"PATH": "/opt/node-22/bin:/home/a/.x/bin", **PROXY})
    assert list_folders(variables) == ["/opt/node-22/bin", "/home/a/.x/bin"]
    assert select_plain_variables(variables) == PROXY
    assert list_folders(PROXY) == []
    with pytest.raises(InvalidRequestError, match="at most 20 folders, got 21"):
        check_variables({"PATH": ":".join(["/bin"] * 21)})


def test_a_changed_variable_begins_an_epoch(personas: Personas) -> None:
    host = make_local_host(personas.alice)
    facts = {"fingerprint": "f", "static": {"kernel": "6.1"}}
    record_snapshot(host=host, facts=facts)
    host = set_host_settings(member=personas.alice, host_id=host.pk, env={"MALLOC_ARENA_MAX": "2"})
    record_snapshot(host=host, facts=facts)
    record_snapshot(host=host, facts=facts)
    (change,) = host.changes.all()
    assert change.changed == {"environment": ["", "MALLOC_ARENA_MAX=2"]}
    assert Host.objects.get().env == {"MALLOC_ARENA_MAX": "2"}
