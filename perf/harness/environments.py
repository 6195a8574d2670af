"""Virtual environments of the alternatives, with exactly the content of requirements/bench*.txt."""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

from devstack.bootstrap import (
    compute_fingerprint,
    find_uv_on_path,
    install_uv,
    is_working_python,
    run,
)
from devstack.filelock import wait_for_lock
from devstack.places import CHECKOUT, STATE

FOLDER = STATE / "bench"


def build_alternatives_venv(which: str = "") -> Path:
    """Return the folder of the environment's programs; create it if it is not up to date.

    `which`: the benchmark, if its alternatives cannot be installed together with the others.
    """
    return build_venv(
        _name("venv", which), CHECKOUT / "requirements" / f"{_name('bench', which)}.txt"
    )


def build_venv(name: str, lock: Path) -> Path:
    """Return the folder of the programs of an environment with the content of `lock`."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    stamp = FOLDER / f"{name}.installed"
    with wait_for_lock(
        FOLDER / f"{name}.lock", "pitwall: another process installs alternatives; waiting."
    ):
        if not stamp.exists() or stamp.read_text() != compute_fingerprint(lock):
            stamp.unlink(missing_ok=True)
            _fill(FOLDER / name, lock)
            stamp.write_text(compute_fingerprint(lock))
    return FOLDER / name / "bin"


def read_version(package: str, which: str = "") -> str:
    """Return the installed version from the package's metadata."""
    places = [
        str(path) for path in FOLDER.glob(f"{_name('venv', which)}/lib/python*/site-packages")
    ]
    return next(dist.version for dist in distributions(path=places) if dist.name.lower() == package)


def _name(stem: str, which: str) -> str:
    return f"{stem}-{which}" if which else stem


def _fill(venv: Path, lock: Path) -> None:
    print("pitwall: installing the alternatives of the benchmark", file=sys.stderr, flush=True)
    python = str(venv / "bin" / "python")
    base = str(getattr(sys, "_base_executable", sys.executable))
    uv = find_uv_on_path() or install_uv()
    if uv is not None:
        run([uv, "venv", "--quiet", "--clear", "--python", base, str(venv)])
        # Compile now, and not in the first measured invocation.
        install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python]
        run([*install, "--require-hashes", "-r", str(lock)])
        return
    if not is_working_python([base, "-m", "venv", "--clear", str(venv)]):
        raise RuntimeError(f"`{base} -m venv` failed; put uv on PATH")
    run([python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(lock)])
