"""Command lines mean the same to every login shell."""

import shutil
import subprocess
from pathlib import Path

import pytest

from orchestrator.transport.command import build_command_line, split_mark

SHELLS = ("sh", "bash", "dash", "busybox", "zsh", "ksh", "tcsh", "csh", "fish")
INSTALLED = [shell for shell in SHELLS if shutil.which(shell)]
ODD = [
    "it's",
    'a "quote"',
    "back\\\\slash\\'",
    "$HOME `id`",
    "!! !x",
    "line\nline",
    "ä€",
    "%s \\0101",
]


@pytest.mark.parametrize("shell", INSTALLED)
def test_arguments_input_and_status_pass_a_login_shell(shell: str, tmp_path: Path) -> None:
    folder = tmp_path / "it's a folder!"
    folder.mkdir()
    script = 'printf "%s|" "$@"; cat; pwd; exit 7'
    line = build_command_line(["sh", "-c", script, "x", *ODD], str(folder), reads=True)
    done = _run(shell, line, b"input\n")
    group, output = split_mark(done.stdout)
    assert done.returncode == 7, done.stderr
    assert output.decode() == "|".join(ODD) + f"|input\n{folder}\n"
    assert group is not None


@pytest.mark.parametrize("shell", INSTALLED)
def test_a_login_shell_that_prints_a_banner_changes_no_output(shell: str, tmp_path: Path) -> None:
    line = build_command_line(["echo", "answer"], str(tmp_path))
    done = _run(shell, f"echo 'Welcome! Last login: never'; {line}", b"")
    assert split_mark(done.stdout)[1] == b"answer\n"


def _run(shell: str, line: str, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run the line as sshd does."""
    argv = [shell, "sh", "-c", line] if shell == "busybox" else [shell, "-c", line]
    return subprocess.run(argv, input=stdin, capture_output=True, timeout=60, check=False)
