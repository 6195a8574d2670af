"""The load tool that a host uses, and the error if none is suitable."""

import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.benchmarks.spec import from_data
from orchestrator.core.errors import HostSetupError
from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.rounds import build_round_plans
from orchestrator.dispatch.tools import collect_tool_needs, find_own_tool, locate_tool
from tests.dispatch.support import THEIR_OHA, facts, leased
from tests.support.factories import DEFINITION, Personas
from tests.support.programs import tool

H3 = frozenset({"http3"})
WITHOUT_H3 = '[ "$1" = --version ] || { echo "has not been built with HTTP/3" >&2; exit 1; }'

Install = Callable[[str, str], Path]


@pytest.fixture
def install(tmp_path: Path, settings: Any) -> Install:
    """Makes a program the installation's binary of a tool."""

    def installed(name: str, script: str) -> Path:
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        settings.LOAD_TOOLS = {name: str(program)}
        return program

    return installed


@pytest.fixture(autouse=True)
def nothing_installed(settings: Any) -> None:
    settings.LOAD_TOOLS = {}


def test_the_tool_of_the_orchestrator_is_sent_to_a_host_that_can_run_it(install: Install) -> None:
    program = install("oha", "echo oha 1.16.0")
    path, own = locate_tool("oha", facts(oha=THEIR_OHA))
    assert own is not None
    assert (own.path, own.version) == (str(program), "1.16.0")
    assert path == f"tools/{own.sha256}/oha"


def test_the_tool_of_the_host_is_used_on_another_platform(install: Install) -> None:
    install("oha", "echo oha 1.16.0")
    there = {**facts(oha=THEIR_OHA), "machine": "riscv64"}
    assert locate_tool("oha", there) == ("/usr/bin/oha", None)


@pytest.mark.parametrize("says", ["oha 1.13.0", "nothing of use"])
def test_the_tool_of_the_host_is_used_if_ours_is_unsuitable(install: Install, says: str) -> None:
    install("oha", f"echo {says}")
    assert locate_tool("oha", facts(oha=THEIR_OHA)) == ("/usr/bin/oha", None)


def test_the_tool_with_the_needed_feature_is_used(install: Install) -> None:
    install("oha", f"{WITHOUT_H3}; echo oha 1.16.0")
    there = facts(oha=THEIR_OHA)
    assert locate_tool("oha", there)[1] is not None
    assert locate_tool("oha", there, H3) == ("/usr/bin/oha", None)


@pytest.mark.parametrize(
    ("theirs", "complaint"),
    [
        (None, "the host has none on its PATH, and this installation has no binary for"),
        ({**THEIR_OHA, "version": "1.13.0"}, "the host has /usr/bin/oha, which is 1.13.0, and"),
        ({**THEIR_OHA, "version": None}, "the host has /usr/bin/oha, which reports no version"),
    ],
)
def test_a_missing_tool_is_reported_with_a_fix(
    theirs: dict[str, object] | None, complaint: str
) -> None:
    with pytest.raises(HostSetupError) as caught:
        locate_tool("oha", facts(oha=theirs))
    message = str(caught.value)
    assert message.startswith(f"oha 1.14.0 or newer is missing: {complaint}")
    assert f"PITWALL_OHA to such a binary for {platform.system()} {platform.machine()}" in message


@pytest.mark.parametrize("features", [[], None])
def test_a_missing_feature_is_named(install: Install, features: list[str] | None) -> None:
    program = install("oha", f"{WITHOUT_H3}; echo oha 1.16.0")
    with pytest.raises(HostSetupError) as caught:
        locate_tool("oha", facts(oha={**THEIR_OHA, "features": features}), H3)
    assert str(caught.value) == (
        "oha 1.14.0 or newer with HTTP/3 is missing: the host has /usr/bin/oha, which is built "
        f"without HTTP/3, and this installation sends {program}, which is built without HTTP/3; "
        "install oha on the host (make tools, or cargo install oha --features http3), or set "
        f"PITWALL_OHA to such a binary for {platform.system()} {platform.machine()}"
    )


def test_a_setting_with_a_file_that_cannot_be_run_is_named(install: Install) -> None:
    install("oha", "").write_bytes(b"\x7fELF of another machine")
    with pytest.raises(HostSetupError, match=r"PITWALL_OHA=.* cannot be run on the orchestrator"):
        locate_tool("oha", facts(oha=THEIR_OHA))


def test_a_missing_configured_file_is_reported(settings: Any, tmp_path: Path) -> None:
    settings.LOAD_TOOLS = {"oha": str(tmp_path / "gone")}
    with pytest.raises(HostSetupError, match=r"names .*/gone, which is not a file"):
        locate_tool("oha", facts())


def test_a_script_needs_no_binary(install: Install) -> None:
    assert locate_tool("script", facts()) == ("/usr/bin/python3", None)


def test_real_tools_are_recognised(settings: Any) -> None:
    names = ("oha", "ghz", "k6", "wrk", "h2load")
    settings.LOAD_TOOLS = {name: str(tool(name)) for name in names}
    tools = {name: find_own_tool(name) for name in names}
    assert {name: own is not None and own.version is not None for name, own in tools.items()} == (
        dict.fromkeys(names, True)
    )
    assert tools["oha"] is not None
    assert tools["oha"].features == H3


def test_a_feature_is_needed_if_one_case_needs_it() -> None:
    spec = from_data(
        {
            "version": 1,
            "title": "t",
            "subject": {"start": ["server", "{port}"]},
            "load": {"requests": 1, "protocol": "{protocol}", "tls": True},
            "matrix": {"protocol": ["h1", "h3"]},
        }
    )
    assert collect_tool_needs(spec, [{"protocol": "h1"}]) == {"oha": frozenset()}
    assert collect_tool_needs(spec, [{"protocol": "h1"}, {"protocol": "h3"}]) == {"oha": H3}


def test_all_cases_of_a_job_use_the_sent_tool(
    personas: Personas, tmp_path: Path, install: Install
) -> None:
    """Ours would do for the first case, but was not sent, since the second cannot use it."""
    install("oha", f"{WITHOUT_H3}; echo oha 1.16.0")
    source = DEFINITION.replace(
        "  path: /hello\n", '  path: /hello\n  tls: true\n  protocol: "{protocol}"\n'
    ).replace("  connections: [4]", "  connections: [4]\n  protocol: [h1, h3]")
    job = leased(personas, tmp_path, source)
    plan = json.loads(build_round_plans(job, JobHosts(job), ports={})["b"])
    assert [trial["tool"]["path"] for trial in plan["trials"]] == ["/usr/bin/oha"] * 4
