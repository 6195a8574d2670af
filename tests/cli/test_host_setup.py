"""`pitwall host setup` on this machine, as far as nothing of it changes; `make vm-test` runs it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.platform.linux.tuning import KNOBS
from cli.bundle import build_command
from cli.pitwall.main import main
from cli.pitwall.setup_script import TUNING_FILES, build_setup_script

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsM pitwall"


def run_command(tmp_path: Path, *words: str, user: int | None = None) -> Any:
    program = tmp_path / "pitwall"
    program.write_bytes(build_command())
    return subprocess.run(
        [sys.executable, str(program), "host", "setup", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        user=user,
    )


def test_the_script_is_printed_and_not_run_without_consent(tmp_path: Path) -> None:
    key = tmp_path / "key.pub"
    key.write_text(f"{KEY}\n")
    done = run_command(tmp_path, "--key", str(key), "--no-tuning")
    assert done.stdout == build_setup_script("pitwall", KEY, tuning=False) + "\n"
    assert f"public_key='{KEY}'" in done.stdout
    assert "tuning=no" in done.stdout
    assert done.returncode == 2
    assert ("nothing was run" if os.geteuid() == 0 else "only root") in done.stderr
    assert subprocess.run(["sh", "-n"], input=done.stdout.encode()).returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may run the script")
@pytest.mark.skipif(Path("/run/systemd/system").exists(), reason="it would prepare this machine")
def test_a_host_without_systemd_is_left_as_it_is(tmp_path: Path) -> None:
    done = run_command(tmp_path, "--yes")
    assert done.returncode == 2
    assert "error: this host does not run systemd" in done.stderr
    assert "the script failed with status 1" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--user", "a;reboot"], "is no name of an account"),
        (["--key", "/nonexistent"], "cannot be read"),
        (["--key", "/etc/hostname"], "this is no public key"),
    ],
)
def test_invalid_options_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["host", "setup", "--print", *words]) == 2
    captured = capsys.readouterr()
    assert (captured.out, message in captured.err) == ("", True)


def test_the_account_may_change_what_the_agent_tunes() -> None:
    """Only root can write below /proc/sys, whatever the mode of a file is."""
    files = {Path("/", path) for knob in KNOBS.values() for path in knob.files}
    governor = Path("/", *KNOBS["governor"].files)
    files |= {governor.with_name(name) for name in KNOBS["governor"].follows}
    assert {str(path) for path in files if path.is_relative_to("/sys")} == set(TUNING_FILES)
