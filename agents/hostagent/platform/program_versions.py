"""The version and features of a load tool: from its output, or read from its file."""

from __future__ import annotations

import mmap
import re
import subprocess
from pathlib import Path
from typing import Optional

from ..files import read_tail_text

#: The argument that prints the version, by load tool.
ARGUMENTS = {
    "oha": "--version",
    "wrk": "--version",
    "h2load": "--version",
    "k6": "version",
    "ghz": "--version",
}
#: Prints its version, and then an error for missing arguments.
COMPLAINING = ("wrk",)
#: Starting a JVM for its version needs 0.3 s of CPU time, so the version is read from a file.
JDK_PROGRAMS = ("java", "javac")
_RELEASE_BYTES = 65_536
_JDK_VERSION = re.compile(r'^JAVA_VERSION="([^"]*)"', re.MULTILINE)
#: Sends no request; oha without HTTP/3 refuses the arguments.
_HTTP3 = (
    *("--no-tui", "--output-format", "quiet", "--http-version", "3", "-n", "0"),
    *("--connect-timeout", "1ms", "https://127.0.0.1:1/"),
)
_PROBES = {"oha": {"http3": _HTTP3}}

#: The marker of Go's linker before the build information, at a multiple of 16 (debug/buildinfo).
_BUILD_INFO = b"\xff Go buildinf:"
_ALIGNMENT, _WINDOW_BYTES, _FILE_BYTES = 16, 4096, 512 * 1024 * 1024
_MAIN_MODULE = re.compile(rb"\nmod\t[^\t\n]+\tv(\d+\.\d+\.\d+)")


def find_version(text: str) -> Optional[str]:
    """Return the first version number in the output of a program."""
    match = re.search(r"\d+(?:\.\d+)+[a-z]?(?![a-z])", text) or re.search(
        r'(?<=version ")\d+', text
    )
    return match.group() if match else None


def read_tool_version(name: str, path: str | Path, timeout_s: float = 10.0) -> Optional[str]:
    """Return the version of the load tool `name` at `path`; None if unknown.

    Raises OSError if it cannot be started.
    """
    argv = [str(path), ARGUMENTS.get(name, "--version")]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        return None
    version = None
    if done.returncode == 0 or name in COMPLAINING:
        version = find_version(done.stdout.decode("utf-8", "replace"))
    return version or read_module_version(path)


def read_jdk_version(path: str | Path) -> Optional[str]:
    """Return the version in the file `release` of the JDK that has the program at `path`.

    None if there is no such file, as next to a JRE of Java 8.
    """
    release = Path(path).resolve().parent.parent / "release"
    # Measured code may write to a JDK in the home. A pipe there would never end.
    text = read_tail_text(release, _RELEASE_BYTES) if release.is_file() else ""
    match = _JDK_VERSION.search(text)
    # As the program prints it: 8 and older have a build number after an underscore.
    return find_version(f'version "{match.group(1)}"') if match else None


def read_module_version(path: str | Path) -> Optional[str]:
    """Return the module version of an installed Go program, as its linker wrote it.

    None for other programs, and for those built from a checkout. A ghz of `go install` reports the
    version "dev", so only the file contains the version.
    """
    try:
        with open(path, "rb") as file:
            program = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # an empty file cannot be mapped
        return None
    with program:
        return _find_main_module(program) if len(program) <= _FILE_BYTES else None


def _find_main_module(program: mmap.mmap) -> Optional[str]:
    at = program.find(_BUILD_INFO)
    while at >= 0:
        if at % _ALIGNMENT == 0:
            match = _MAIN_MODULE.search(program[at : at + _WINDOW_BYTES])
            if match:
                return match.group(1).decode()
        at = program.find(_BUILD_INFO, at + 1)
    return None


def read_tool_features(name: str, path: str | Path, timeout_s: float = 5.0) -> Optional[list[str]]:
    """Return the optional features of this build of the load tool, such as "http3" for oha.

    None for a tool without optional features, or without an answer.
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
