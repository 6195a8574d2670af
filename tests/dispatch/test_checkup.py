"""What a check-up finds on hosts that are not as they should be."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from orchestrator.dispatch import checkup_inside
from orchestrator.fleet.host_settings import set_host_settings
from orchestrator.fleet.models import CheckStep, Host, HostCheck
from orchestrator.fleet.services import record_snapshot
from orchestrator.transport.base import CommandResult
from tests.support.engine import check_now
from tests.support.factories import Personas, make_local_host

Says = Callable[[Sequence[str]], CommandResult]


def _build_result(stdout: str = "", *, status: int = 0, stderr: str = "") -> CommandResult:
    return CommandResult(exit_status=status, stdout=stdout.encode(), stderr=stderr.encode())


class Machine:
    """In place of a transport: what it answers to a command."""

    def __init__(self, says: Says) -> None:
        self._output = says

    def run(self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b"") -> CommandResult:
        return self._output(argv)

    def put(self, *_: Any, **__: Any) -> None:
        """Take the agent."""


@pytest.fixture
def host(personas: Personas) -> Host:
    return make_local_host(personas.alice)


def _try(
    host: Host, personas: Personas, monkeypatch: pytest.MonkeyPatch, step: CheckStep, says: Says
) -> HostCheck:
    """The step alone, as if those before it had passed."""

    @contextlib.contextmanager
    def way_to(*_: Any) -> Iterator[Any]:
        yield Machine(says)

    monkeypatch.setattr(checkup_inside, "open_transport", way_to)
    for each in CheckStep:
        if each == step:
            break
        HostCheck.objects.create(host=host, step=each, outcome="passed", seconds=0.1)
    check_now(member=personas.alice, host_id=host.pk)
    return HostCheck.objects.get(host=host, step=step)


@pytest.mark.parametrize(
    ("answer", "words", "command"),
    [
        (_build_result(status=127), "there is no such command", "sudo apt install python3"),
        (
            _build_result("3.8.10 \n"),
            "is Python 3.8.10; the agent needs 3.9",
            "sudo apt install python3",
        ),
        (
            _build_result("3.11.2 zlib,ssl\n"),
            "lacks parts of its standard library: zlib,ssl",
            "python3",
        ),
        (_build_result(status=2, stderr="Unknown option: -I"), "Unknown option: -I", "python3"),
    ],
)
def test_an_unsuitable_python_fails_with_instructions(
    answer: CommandResult, words: str, command: str, host: Host, personas: Personas,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    check = _try(host, personas, monkeypatch, CheckStep.PYTHON, lambda _: answer)
    assert check.outcome == "failed"
    assert words in check.message
    assert command in json.dumps(check.remedies)


@pytest.mark.parametrize(
    ("transport", "login", "run_as", "words"),
    [
        (
            "ssh",
            "root",
            "",
            "runs as root: name a user for measured code, or give the host a dedicated login",
        ),
        ("ssh", "bench", "", "runs as bench: use a login that has access to nothing else"),
        ("ssh", "root", "bench", "runs as bench; agent and load tools run as root"),
        ("local", "", "", "as the user of Pitwall's own workers"),
    ],
)
def test_the_user_that_runs_measured_code_is_reported(
    transport: str, login: str, run_as: str, words: str
) -> None:
    host = Host(transport=transport, login=login, run_as=run_as)
    assert words in checkup_inside._describe_user(host)


@pytest.mark.parametrize(
    ("off_s", "outcome", "words"),
    [
        (90.0, "warning", "1 min 30 s ahead of"),
        (-5.0, "warning", "5 s behind"),
        (0.2, "passed", ""),
    ],
)
def test_a_wrong_clock_warns(
    off_s: float, outcome: str, words: str, host: Host, personas: Personas,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    # A local host shares our clock, and so has no such step.
    Host.objects.update(transport="ssh", state="maintenance")
    check = _try(
        host,
        personas,
        monkeypatch,
        CheckStep.CLOCK,
        lambda _: _build_result(f"{time.time() + off_s!r}\n"),
    )
    assert check.outcome == outcome
    assert words in check.message
    assert ("chrony" in json.dumps(check.remedies)) == (outcome == "warning")


@pytest.mark.parametrize(
    ("look", "outcome", "words"),
    [
        ({"foreign_share": 0.004}, "passed", "other processes use 0.4 % of a core"),
        ({}, "passed", "the CPU use of other processes is unknown"),
        (
            {"foreign_share": 1.5, "foreign": [{"name": "backupd", "cpu_s": 3.0}]},
            "warning",
            "other processes use 150 % of a core (backupd), expected at most 5 % of a core",
        ),
        ({"steal_share": 0.2, "on_battery": True}, "warning", "it runs on battery"),
    ],
)
def test_a_busy_host_warns(
    look: dict[str, Any], outcome: str, words: str, host: Host, personas: Personas,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    answer = _build_result(json.dumps({"interference": look}))
    check = _try(host, personas, monkeypatch, CheckStep.QUIET, lambda _: answer)
    assert (check.outcome, words in check.message) == (outcome, True)


ALL_LIMITS = {
    "limits_available": ["cpus", "cpu_quota", "memory_bytes", "open_files"],
    "limits_mechanism": "cgroup2",
    "limits_open_files": 65_536,
    "tuning_available": ["smt"],
}


@pytest.mark.parametrize(
    ("changes", "outcome", "words"),
    [
        ({}, "passed", "Control groups (cgroup2) enforce all limits"),
        (
            {"limits_available": ["cpus"], "limits_problem": "nothing is delegated"},
            "warning",
            "cases that limit cpu_quota and memory are unsupported here: nothing is delegated",
        ),
        ({"limits_open_files": 1024}, "warning", "may open only 1,024 files"),
        ({"tuning_available": []}, "warning", "may not change smt"),
        ({"local_ports": 28_232}, "passed", "all limits"),
        ({"local_ports": 5000}, "warning", "uses up the 5,000 local ports"),
        ({"network_problem": "ip missing"}, "passed", "It emulates no network: ip missing"),
        (
            {"network_available": ["rate"], "network_problem": "no netem"},
            "passed",
            "It emulates the rate of a network; no netem",
        ),
    ],
)
def test_what_the_setup_of_a_host_lacks_is_reported(
    changes: dict[str, Any], outcome: str, words: str, host: Host, personas: Personas,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    set_host_settings(member=personas.alice, host_id=host.pk, tuning={"smt": "off"})
    record_snapshot(host=host, facts={**ALL_LIMITS, **changes})
    check = _try(host, personas, monkeypatch, CheckStep.LIMITS, lambda _: _build_result())
    assert (check.outcome, words in check.message) == (outcome, True), check.message
    assert ("pitwall host setup" in json.dumps(check.remedies)) == (outcome == "warning")


def test_a_work_directory_that_starts_no_program_is_refused(
    host: Host, personas: Personas, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = _build_result(json.dumps({"facts": {"work_dir_noexec": True}}))
    check = _try(host, personas, monkeypatch, CheckStep.AGENT, lambda _: answer)
    assert (check.outcome, "mounted with noexec" in check.message) == ("failed", True)
    assert "findmnt" in json.dumps(check.remedies)
    assert not host.snapshots.exists()


@pytest.mark.parametrize(
    ("tools", "outcome", "words"),
    [
        ({}, "warning", "none of ghz, h2load, k6, oha, wrk"),
        ({"wrk": {"path": "/usr/bin/wrk", "version": "4.2.0"}}, "passed", "wrk (/usr/bin/wrk)"),
    ],
)
def test_usable_load_tools_of_a_host_are_reported(
    tools: dict[str, Any], outcome: str, words: str, host: Host, personas: Personas,
    monkeypatch: pytest.MonkeyPatch, settings: Any,
) -> None:  # fmt: skip
    settings.LOAD_TOOLS = {}
    record_snapshot(host=host, facts={"system": "Linux", "machine": "aarch64", "tools": tools})
    check = _try(host, personas, monkeypatch, CheckStep.TOOLS, lambda _: _build_result())
    assert (check.outcome, words in check.message) == (outcome, True)
    assert "Linux aarch64" in json.dumps(check.remedies)
