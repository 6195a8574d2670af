"""Fill `.venv` with exactly the content of the lock files: `python3 -m devstack.bootstrap [--dev]`.

It runs with any `python3`, so it uses only the standard library and the syntax of Python 3.8. A
stamp inside `.venv` says what was installed and whether the installation was completed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from devstack.filelock import wait_for_lock
from devstack.places import CHECKOUT, STATE, VENV, VENV_PYTHON, get_tools_cache

OLDEST = (3, 11)
NAMES = ("python3.13", "python3.12", "python3.11", "python3.14")
STAMP = VENV / ".pitwall-stamp"
LOCK = "requirements.txt"
DEV_LOCK = "requirements/dev.txt"
UV_LOCK = CHECKOUT / "requirements" / "uv.txt"


class BootstrapError(Exception):
    """A problem that the user has to fix; the text says which."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m devstack.bootstrap", description=__doc__)
    parser.add_argument("--dev", action="store_true", help="also what tests and checks need")
    options = parser.parse_args()
    try:
        with wait_for_lock(
            STATE / "bootstrap.lock", "pitwall: another process fills .venv; waiting."
        ):
            ensure(dev=options.dev)
    except BootstrapError as error:
        print(f"pitwall: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def ensure(*, dev: bool) -> None:
    """Make `.venv` match the lock files; return at once if it does already."""
    wanted = {name: compute_fingerprint(CHECKOUT / name) for name in lock_files(dev)}
    stamp = read_stamp()
    installed = stamp.get("installed", {})
    whole = stamp.get("state") == "ready" and VENV_PYTHON.exists()
    if whole and all(installed.get(name) == digest for name, digest in wanted.items()):
        return
    if whole and not dev and DEV_LOCK in installed:
        # This checkout is also used for tests: keep their packages.
        ensure(dev=True)
        return
    if not whole:
        make_venv()
    write_stamp({"state": "installing", "installed": {}})
    install(lock_files(dev))
    write_stamp({"state": "ready", "installed": wanted})


def lock_files(dev: bool) -> list[str]:
    return [LOCK, DEV_LOCK] if dev else [LOCK]


def compute_fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_stamp() -> dict[str, Any]:
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp(stamp: dict[str, Any]) -> None:
    new = STAMP.with_name(STAMP.name + ".new")
    new.write_text(json.dumps(stamp))
    new.replace(STAMP)


def make_venv() -> None:
    python = pick_python()
    if VENV.exists():
        print("pitwall: .venv is incomplete; creating it again")
        shutil.rmtree(VENV)
    print(f"pitwall: creating .venv with {python}", flush=True)
    uv = find_uv_on_path()
    if uv is not None:
        # uv is thirty times as fast as the module venv, which Debian's python3 may lack.
        run([uv, "venv", "--quiet", "--python", python, str(VENV)])
    elif not is_working_python([python, "-m", "venv", str(VENV)]):
        shutil.rmtree(VENV, ignore_errors=True)
        raise BootstrapError(
            f"`{python} -m venv` failed. On Debian and Ubuntu: apt-get install python3-venv. "
            "Or put uv on PATH."
        )


def pick_python() -> str:
    """Return the running Python if it is new enough, or one with a usual name on the PATH."""
    if sys.version_info >= OLDEST:
        # Not sys.executable of a virtual environment, which may be removed.
        return str(getattr(sys, "_base_executable", sys.executable))
    for name in NAMES:
        path = shutil.which(name)
        if path and is_new_enough(path):
            return path
    running = ".".join(str(part) for part in sys.version_info[:3])
    raise BootstrapError(
        f"Pitwall needs Python 3.11 or newer. `{sys.executable}` is {running}, and none of "
        f"{', '.join(NAMES)} on PATH works. Install one, or say make PYTHON=/path/to/python3.11"
    )


def is_new_enough(python: str) -> bool:
    # A name on PATH may be the shim of a version manager without such a version.
    probe = f"import sys, venv; sys.exit(sys.version_info < {OLDEST!r})"
    return is_working_python([python, "-c", probe])


def install(locks: list[str]) -> None:
    files = [arg for name in locks for arg in ("-r", str(CHECKOUT / name))]
    required = ["--require-hashes", *files]
    uv = find_uv_on_path() or install_uv()
    print(f"pitwall: installing {' and '.join(locks)}", flush=True)
    if uv is not None:
        run([uv, "pip", "install", "--quiet", "--python", str(VENV_PYTHON), *required])
    else:
        print("pitwall: uv is not available here; pip takes two to four minutes", flush=True)
        run([str(VENV_PYTHON), "-m", "pip", "install", "--quiet", *required])


def find_uv_on_path() -> str | None:
    path = shutil.which("uv")
    return path if path and is_working_python([path, "--version"]) else None


def install_uv() -> str | None:
    """Return a pinned uv in the user's cache; pip installs it there at the first use."""
    home = get_tools_cache() / f"uv-{compute_fingerprint(UV_LOCK)[:12]}"
    uv = home / "bin" / "uv"
    if uv.exists() and is_working_python([str(uv), "--version"]):
        return str(uv)
    with wait_for_lock(home.with_suffix(".lock"), "pitwall: another process installs uv; waiting."):
        shutil.rmtree(home, ignore_errors=True)
        pip = [str(VENV_PYTHON), "-m", "pip", "install", "--quiet", "--require-hashes"]
        is_working_python([*pip, "--prefix", str(home), "-r", str(UV_LOCK)])
    return str(uv) if uv.exists() and is_working_python([str(uv), "--version"]) else None


def is_working_python(argv: list[str]) -> bool:
    try:
        done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return done.returncode == 0


def run(argv: list[str]) -> None:
    status = subprocess.run(argv, cwd=str(CHECKOUT), env=clean_environment()).returncode
    if status != 0:
        raise BootstrapError(f"`{' '.join(argv)}` ended with {status}. Its message is above.")


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}


if __name__ == "__main__":
    sys.exit(main())
