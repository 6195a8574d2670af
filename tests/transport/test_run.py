import sys
from pathlib import Path

import pytest

from orchestrator.core.errors import HostError, HostSetupError, InvalidRequestError
from orchestrator.transport.base import OUTPUT_LIMIT_BYTES, CommandTimedOutError, Transport
from orchestrator.transport.ssh import SshTransport
from tests.support.waiting import wait_until


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_a_command_runs_in_the_work_directory(transport: Transport, work: Path) -> None:
    done = transport.run(["pwd", "-P"], timeout_s=60)
    assert (done.exit_status, done.stderr) == (0, b"")
    assert done.stdout.decode() == f"{work.resolve()}\n"


def test_a_command_does_not_inherit_settings_of_pitwall(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        *("PITWALL_SECRET_KEY", "OTEL_EXPORTER_OTLP_HEADERS", "DATABASE_URL", "REDIS_URL"),
        *("POSTGRES_PASSWORD", "REDISCLI_AUTH", "AWS_SECRET_ACCESS_KEY", "A_SECRET_OF_TOMORROW"),
        *("SSH_AUTH_SOCK", "https_proxy"),
    ):
        monkeypatch.setenv(name, "planted")
    done = transport.run(python("import os; print(dict(os.environ))"), timeout_s=60)
    assert b"PATH" in done.stdout
    assert b"planted" not in done.stdout


@pytest.mark.parametrize(
    "argument",
    [
        "two words",
        "$HOME",
        "'quoted'",
        '"',
        "`id`",
        "a\nb",
        "",
        "\\n",
        "!x",
        ";exit 3",
        "grüße",
        "*",
    ],
)
def test_arguments_are_passed_unchanged(transport: Transport, argument: str) -> None:
    done = transport.run(["printf", "%s|", argument, "end"], timeout_s=60)
    assert done.stdout.decode() == f"{argument}|end|"


def test_status_stdout_and_stderr_are_separate(transport: Transport) -> None:
    done = transport.run(["sh", "-c", "echo out; echo err >&2; exit 7"], timeout_s=60)
    assert (done.exit_status, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


def test_output_is_returned_as_bytes(transport: Transport) -> None:
    done = transport.run(["printf", r"\377\000\376pitwall-pid 1\n\r\n"], timeout_s=60)
    assert done.stdout == b"\xff\x00\xfepitwall-pid 1\n\r\n"


def test_large_output_on_both_streams_is_read(transport: Transport) -> None:
    program = (
        "import sys\n"
        "for _ in range(3): sys.stderr.write('e' * 1000000); sys.stdout.write('o' * 1000000)"
    )
    done = transport.run(python(program), timeout_s=60)
    assert (done.exit_status, done.stdout, done.stderr) == (0, b"o" * 3_000_000, b"e" * 3_000_000)


@pytest.mark.parametrize("size", [1, 300_000])
def test_a_command_gets_its_input_and_its_end(transport: Transport, size: int) -> None:
    stdin = b"\xff\x00\n" * size
    program = "import sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data[::-1])"
    done = transport.run(python(program), timeout_s=60, stdin=stdin)
    assert (done.exit_status, done.stdout, done.stderr) == (0, stdin[::-1], b"")


def test_a_command_that_does_not_read_its_input_ends_normally(transport: Transport) -> None:
    done = transport.run(["sh", "-c", "echo done; exit 3"], timeout_s=60, stdin=b"x" * 100_000)
    assert (done.exit_status, done.stdout) == (3, b"done\n")


def test_a_command_has_no_stdin(transport: Transport) -> None:
    done = transport.run(["cat"], timeout_s=60)
    assert (done.exit_status, done.stdout) == (0, b"")


def test_a_command_has_no_terminal(transport: Transport) -> None:
    program = "import sys; print(any(s.isatty() for s in (sys.stdin, sys.stdout, sys.stderr)))"
    assert transport.run(python(program), timeout_s=60).stdout == b"False\n"


def test_a_missing_program_has_status_127(transport: Transport) -> None:
    done = transport.run(["no-such-program"], timeout_s=60)
    assert done.exit_status == 127
    assert b"no-such-program" in done.stderr


def test_a_file_that_is_not_executable_has_status_126(transport: Transport) -> None:
    transport.put(b"", "plain")
    assert transport.run(["./plain"], timeout_s=60).exit_status == 126


def test_the_signal_that_killed_a_command_is_reported(transport: Transport) -> None:
    done = transport.run(python("import os; os.kill(os.getpid(), 9)"), timeout_s=60)
    assert done.exit_status == 128 + 9


def test_a_timeout_stops_a_command_and_its_children(transport: Transport, work: Path) -> None:
    script = "sleep 600 & echo $! >child; echo $$ >parent; wait"
    with pytest.raises(
        CommandTimedOutError, match=r"sh took longer than 2 s on .* stopped"
    ) as caught:
        transport.run(["sh", "-c", script], timeout_s=2)
    assert caught.value.transient
    assert_ended(int((work / "child").read_text()))
    assert_ended(int((work / "parent").read_text()))
    assert transport.run(["echo", "alive"], timeout_s=60).stdout == b"alive\n"


def test_a_command_that_ignores_sigterm_is_killed(transport: Transport, work: Path) -> None:
    script = "trap '' TERM; echo $$ >pid; while :; do sleep 1; done"
    with pytest.raises(CommandTimedOutError):
        transport.run(["sh", "-c", script], timeout_s=2)
    assert_ended(int((work / "pid").read_text()))


def test_a_command_with_endless_output_is_stopped(transport: Transport, work: Path) -> None:
    with pytest.raises(HostError, match=f"more than {OUTPUT_LIMIT_BYTES} bytes"):
        transport.run(["sh", "-c", "echo $$ >pid; exec yes"], timeout_s=60)
    assert_ended(int((work / "pid").read_text()))


def test_a_detached_command_stays_alive(transport: Transport, work: Path) -> None:
    script = "(sleep 1; echo done >late) </dev/null >/dev/null 2>&1 & echo started"
    done = transport.run(["sh", "-c", script], timeout_s=60)
    transport.close()
    assert done.stdout == b"started\n"
    wait_until(lambda: (work / "late").exists())


@pytest.mark.parametrize("argv", [[], [""], ["echo", "a\0b"], "echo hello"])
def test_an_invalid_command_is_refused(transport: Transport, argv: list[str]) -> None:
    with pytest.raises(InvalidRequestError, match="command"):
        transport.run(argv, timeout_s=60)


def test_a_missing_work_directory_is_reported_with_the_message_of_the_host(
    ssh: SshTransport, tmp_path: Path
) -> None:
    (tmp_path / "work").rmdir()
    with pytest.raises(HostSetupError, match=r"did not run echo in .*/work .*cd: "):
        ssh.run(["echo"], timeout_s=60)


def test_a_killed_shell_and_a_lost_connection_are_distinguished(ssh: SshTransport) -> None:
    with pytest.raises(HostError, match="was killed on") as caught:
        ssh.run(["sh", "-c", "kill -9 $PPID"], timeout_s=60)
    assert not caught.value.transient
    assert ssh.run(["echo", "alive"], timeout_s=60).stdout == b"alive\n"


def assert_ended(pid: int) -> None:
    wait_until(lambda: not is_running(pid))


def is_running(pid: int) -> bool:
    """Not counting the dead whom nobody has buried yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
