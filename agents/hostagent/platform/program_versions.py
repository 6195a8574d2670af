"""Which version a load tool is, and what it was built with: asked, or read from its file."""

from __future__ import annotations

import mmap
import re
import subprocess
from pathlib import Path
from typing import Optional

#: How each load tool is asked for its version.
ARGUMENTS = {
    "oha": "--version",
    "wrk": "--version",
    "h2load": "--version",
    "k6": "version",
    "ghz": "--version",
}
#: Tells its version, then that it misses arguments.
COMPLAINING = ("wrk",)
#: Sends no request; without HTTP/3 oha refuses before it comes to that.
_HTTP3 = (
    *("--no-tui", "--output-format", "quiet", "--http-version", "3", "-n", "0"),
    *("--connect-timeout", "1ms", "https://127.0.0.1:1/"),
)
_PROBES = {"oha": {"http3": _HTTP3}}

#: What Go's linker puts before what it says of a build, at a multiple of 16 (debug/buildinfo).
_BUILD_INFO = b"\xff Go buildinf:"
_ALIGNMENT, _WINDOW_BYTES, _FILE_BYTES = 16, 4096, 512 * 1024 * 1024
_MAIN_MODULE = re.compile(rb"\nmod\t[^\t\n]+\tv(\d+\.\d+\.\d+)")


def version_in(text: str) -> Optional[str]:
    """The first version number in what a program says of itself."""
    found = re.search(r"\d+(?:\.\d+)+[a-z]?(?![a-z])", text) or re.search(
        r'(?<=version ")\d+', text
    )
    return found.group() if found else None


def version_of(name: str, path: str | Path, timeout_s: float = 10.0) -> Optional[str]:
    """The version of the load tool `name` at `path`; None where it does not tell one.

    Raises OSError where it cannot be started.
    """
    argv = [str(path), ARGUMENTS.get(name, "--version")]
    try:
        said = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        return None
    told = None
    if said.returncode == 0 or name in COMPLAINING:
        told = version_in(said.stdout.decode("utf-8", "replace"))
    return told or module_version(path)


def module_version(path: str | Path) -> Optional[str]:
    """The version of the module that a Go program was installed from, as its linker wrote it.

    None for other programs, and for those built from a checkout. A ghz of `go install` calls itself
    "dev" and says it nowhere else.
    """
    try:
        with open(path, "rb") as file:
            program = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # an empty file cannot be mapped
        return None
    with program:
        return _main_module(program) if len(program) <= _FILE_BYTES else None


def _main_module(program: mmap.mmap) -> Optional[str]:
    at = program.find(_BUILD_INFO)
    while at >= 0:
        if at % _ALIGNMENT == 0:
            found = _MAIN_MODULE.search(program[at : at + _WINDOW_BYTES])
            if found:
                return found.group(1).decode()
        at = program.find(_BUILD_INFO, at + 1)
    return None


def features_of(name: str, path: str | Path, timeout_s: float = 5.0) -> Optional[list[str]]:
    """What the load tool can do of that which only some builds can, such as "http3" for oha.

    None where there is nothing to ask, or it was not answered.
    """
    try:
        return sorted(
            feature
            for feature, probe in _PROBES[name].items()
            if _succeeds([str(path), *probe], timeout_s)
        )
    except (KeyError, OSError, subprocess.TimeoutExpired):
        return None


def _succeeds(argv: list[str], timeout_s: float) -> bool:
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=timeout_s,
    )
    return done.returncode == 0
