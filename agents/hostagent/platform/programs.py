"""The load tools, servers, languages and other programs of a host, and their versions.

A query starts a process, so the answers are cached in `programs.json` of the work directory. A
program is queried again when its file has changed, or after a day.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from ..files import write_json
from .program_locations import is_shim, locate_programs
from .program_versions import (
    ARGUMENTS,
    COMPLAINING,
    JDK_PROGRAMS,
    find_version,
    read_jdk_version,
    read_module_version,
    read_tool_features,
)

CACHE = "programs.json"
_FRESH_S = 86_400.0
#: The format of a cached answer; answers in another format are queried again.
_FORMAT = 2
#: Limit for all answers together. A version that is known only sometimes would cause new builds.
_ANSWERS_S = 5.0
#: Time to read an answer after that limit: an earlier program may have used all of it.
_READING_S = 0.1
#: Programs that Pitwall itself needs for a job; only these have a hash.
NEEDED = {**ARGUMENTS, "git": "--version"}
_PYTHONS = ("2.7", *(f"3.{minor}" for minor in range(6, 16)))
SERVERS = {
    "nginx": "-v",
    "redis-server": "--version",
    "valkey-server": "--version",
    "openssl": "version",
}
LANGUAGES = {
    "python3": "--version",
    "go": "version",
    "node": "--version",
    "java": "-version",
    "rustc": "--version",
    "cargo": "--version",
    "php": "--version",
    "ruby": "--version",
    "dotnet": "--version",
}
#: Reported only if they exist.
PYTHONS = {f"python{version}": "--version" for version in _PYTHONS}
OTHERS = {
    **dict.fromkeys(("pypy3", "ghc", "bun", "gcc", "make", "cmake", "mkcert"), "--version"),
    **dict.fromkeys(("caddy", "traefik"), "version"),
    "haproxy": "-v",
    "javac": "-version",
}
#: The argument for a program that a job wants and that is not listed above.
_DEFAULT_ARGUMENT = "--version"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._+-]*\Z")


class VersionQuery:
    """A running query of a program's version."""

    def __init__(self, name: str, path: str, argument: str) -> None:
        """Raises OSError if it cannot be started."""
        self.name = name
        self.path = path
        self._process = subprocess.Popen(
            [path, argument],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def answer(self, deadline: float) -> Optional[str]:
        """Return the version, "" if the program reports none, None after the deadline."""
        try:
            left_s = max(_READING_S, deadline - time.monotonic())
            output, _ = self._process.communicate(timeout=left_s)
        except subprocess.TimeoutExpired:
            self._end()
            return None
        if self._process.returncode and self.name not in COMPLAINING:
            return ""
        return find_version(output.decode("utf-8", "replace")) or ""

    def _end(self) -> None:
        """Kill it with its descendants, which may keep the pipe open."""
        with contextlib.suppress(OSError, AttributeError):  # Windows has no groups
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


def inspect_programs(root: Optional[Path], wanted: Sequence[str] = ()) -> dict[str, Any]:
    """Return {"tools": …, "languages": …, "programs": …} by name; answers are cached below `root`.

    A program is {"path", "version", "sha256"}, or None if it was not found. It has a "reason" if it
    has no version, and "features" if its builds differ in features. It has "beyond_path" if a shell
    would not find it by its name.
    """
    known = {**NEEDED, **SERVERS, **LANGUAGES, **PYTHONS, **OTHERS}
    more = {name: _DEFAULT_ARGUMENT for name in wanted if name not in known and _NAME.match(name)}
    arguments = {**known, **more}
    locations = locate_programs(arguments, on_path_only=NEEDED)
    paths = {name: location.path for name, location in locations.items()}
    programs = _describe_programs(root, paths, arguments, wanted)
    facts = {
        name: _read_program_facts(program, locations[name].outside_path)
        for name, program in programs.items()
        if program["version"] or not is_shim(program["path"])
    }
    return {
        "tools": {name: facts.get(name) for name in (*NEEDED, *SERVERS)},
        "languages": {
            **{name: facts.get(name) for name in LANGUAGES},
            **{
                name: facts[name] for name in PYTHONS if name in facts and programs[name]["version"]
            },
        },
        "programs": {
            **{name: facts[name] for name in OTHERS if name in facts},
            **{name: facts.get(name) for name in more},
        },
    }


def _describe_programs(
    root: Optional[Path],
    paths: Mapping[str, str],
    arguments: Mapping[str, str],
    wanted: Sequence[str],
) -> dict[str, dict[str, Any]]:
    """The programs by name, as the cache has them; others are queried and put into the cache."""
    cached = _read_cache(root)
    programs = {
        name: cached[path]
        for name, path in paths.items()
        if _is_fresh(cached.get(path), path)
        # A wanted program is queried until it has a version: a toolchain may have been missing.
        and (cached[path]["version"] or name not in wanted)
    }
    missing = {name: path for name, path in paths.items() if name not in programs}
    answers = _query_versions(missing, arguments)
    programs.update(answers)
    if answers:
        _write_cache(
            root, {**cached, **{program["path"]: program for program in programs.values()}}
        )
    return programs


def _read_program_facts(program: Mapping[str, Any], outside_path: bool) -> dict[str, Any]:
    facts = {name: program[name] or None for name in ("path", "version", "sha256")}
    if program["features"] is not None:
        facts["features"] = program["features"]
    if outside_path:
        facts["beyond_path"] = True
    reason = "no answer in time" if program["version"] is None else "it reported no version"
    return facts if facts["version"] else {**facts, "reason": reason}


def _query_versions(
    paths: Mapping[str, str], arguments: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Query all programs at once; a program that does not answer in time has no version."""
    began = time.monotonic()
    queries, programs = [], {}
    for name, path in paths.items():
        programs[name] = {
            "path": path,
            "version": read_jdk_version(path) if name in JDK_PROGRAMS else None,
            "sha256": None,
            "features": None,
            **_build_cache_stamp(path),
        }
        if programs[name]["version"] is None:
            with contextlib.suppress(OSError):
                queries.append(VersionQuery(name, path, arguments[name]))
    for name in NEEDED:
        if name in programs:
            programs[name]["sha256"] = _compute_sha256(paths[name])
    for query in queries:
        programs[query.name]["version"] = query.answer(began + _ANSWERS_S)
    for name in ARGUMENTS:
        if name in programs:
            _add_details(name, programs[name])
    return programs


def _add_details(name: str, program: dict[str, Any]) -> None:
    """Add what a load tool does not report itself: its module version and its features."""
    if program["version"] == "":
        program["version"] = read_module_version(program["path"]) or ""
    program["features"] = read_tool_features(name, program["path"])


def _read_cache(root: Optional[Path]) -> dict[str, Any]:
    """Return the cached answers by path; none after a day."""
    with contextlib.suppress(OSError, ValueError):
        if root:
            cached: dict[str, Any] = json.loads((root / CACHE).read_bytes())
            return {
                path: program for path, program in cached.items() if time.time() < program["until"]
            }
    return {}


def _write_cache(root: Optional[Path], programs: Mapping[str, dict[str, Any]]) -> None:
    """Cache all answers, also those without a version, but none that were not in time."""
    answers = {
        path: program for path, program in programs.items() if program["version"] is not None
    }
    if root and root.is_dir():
        with contextlib.suppress(
            OSError
        ):  # without the cache, such as on a full disk, the answers are still valid
            write_json(root / CACHE, answers)


def _is_fresh(cached: Optional[dict[str, Any]], path: str) -> bool:
    return cached is not None and cached["stamp"] == _build_cache_stamp(path)["stamp"]


def _build_cache_stamp(path: str) -> dict[str, Any]:
    stat = os.stat(path)
    return {"stamp": [_FORMAT, stat.st_mtime_ns, stat.st_size], "until": time.time() + _FRESH_S}


def _compute_sha256(path: str) -> Optional[str]:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None
