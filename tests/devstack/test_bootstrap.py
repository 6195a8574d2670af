"""The bootstrap in a checkout of its own, with a uv that notes what it is asked to install."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UV = """#!/bin/sh
[ "$1" = --version ] && exit 0
[ "$1" = venv ] && exec "$4" -m venv --without-pip "$5"
echo "$@" >> "$(dirname "$0")/asked"
[ -e "$(dirname "$0")/hangs" ] && exec sleep 60
exit 0
"""


@pytest.fixture
def checkout(tmp_path) -> Path:
    (tmp_path / "devstack").mkdir()
    for source in (ROOT / "devstack").iterdir():
        if source.is_file():
            (tmp_path / "devstack" / source.name).write_bytes(source.read_bytes())
    (tmp_path / "requirements").mkdir()
    for name in ("requirements.txt", "requirements/dev.txt", "requirements/uv.txt"):
        (tmp_path / name).write_text("# one\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").write_text(UV)
    (tmp_path / "bin" / "uv").chmod(0o755)
    return tmp_path


def begin(checkout: Path, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "devstack.bootstrap", *args],
        cwd=checkout,
        env={**os.environ, "PATH": f"{checkout / 'bin'}:/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )


def bootstrap(checkout: Path, *args: str) -> str:
    process = begin(checkout, *args)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 0, output
    return output


def installations(checkout: Path) -> list[str]:
    log = checkout / "bin" / "asked"
    return log.read_text().splitlines() if log.exists() else []


def test_bootstrap_installs_once_with_hashes(checkout):
    bootstrap(checkout)
    assert (checkout / ".venv" / "bin" / "python").exists()
    assert bootstrap(checkout) == ""
    [line] = installations(checkout)
    assert "pip install" in line
    assert "--require-hashes" in line
    assert line.endswith(f"-r {checkout / 'requirements.txt'}")


def test_bootstrap_installs_again_when_a_lock_file_changes(checkout):
    bootstrap(checkout)
    (checkout / "requirements.txt").write_text("# two\n")
    bootstrap(checkout)
    assert len(installations(checkout)) == 2


def test_bootstrap_adds_test_dependencies_and_keeps_them(checkout):
    bootstrap(checkout)
    bootstrap(checkout, "--dev")
    assert "requirements/dev.txt" in installations(checkout)[-1]
    assert bootstrap(checkout) == ""
    (checkout / "requirements.txt").write_text("# two\n")
    bootstrap(checkout)
    assert "requirements/dev.txt" in installations(checkout)[-1]
    assert len(installations(checkout)) == 3


def test_bootstrap_starts_again_after_a_killed_installation(checkout):
    (checkout / "bin" / "hangs").touch()
    process = begin(checkout)
    while not installations(checkout):
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    (checkout / "bin" / "hangs").unlink()
    (checkout / ".venv" / "half").touch()
    assert "creating it again" in bootstrap(checkout)
    assert not (checkout / ".venv" / "half").exists()
    assert bootstrap(checkout) == ""


def test_bootstrap_does_not_use_a_foreign_environment(checkout):
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").symlink_to(sys.executable)
    assert "creating it again" in bootstrap(checkout)


def test_bootstrap_reports_which_python_it_needs(checkout):
    pretend = "import sys; sys.version_info = (3, 9, 2)"
    program = f"{pretend}; from devstack import bootstrap; sys.exit(bootstrap.main())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=checkout,
        env={"PATH": str(checkout / "bin"), "HOME": str(checkout)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "Pitwall needs Python 3.11 or newer" in done.stderr
    assert "python3.12" in done.stderr
