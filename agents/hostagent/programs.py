"""Which load tools, servers and languages a host has, and in which versions.

Asking costs processes, so the answers are kept in `programs.json` of the work directory: a program
is asked again when its file has changed, or after a day.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from .files import write_json
from .versions import ARGUMENTS, COMPLAINING, features_of, module_version, version_in

CACHE = "programs.json"
_FRESH_S = 86_400.0
#: Of an answer; what an older agent kept is asked again.
_FORMAT = 2
#: How long the load tools and git may take, and all the others.
_NEEDED_S, _WELCOME_S = 5.0, 0.8
#: Programs that a job of Pitwall itself needs; of these the contents are known by their hash.
NEEDED = {**ARGUMENTS, "git": "--version"}
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
#: Told where they are there, and not missed where they are not.
PYTHONS = {f"python3.{minor}": "--version" for minor in range(9, 16)}


class Question:
    """A program that is being asked for its version."""

    def __init__(self, name: str, path: str, argument: str) -> None:
        """Raises OSError where it cannot be started."""
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
        """The version, "" where the program does not tell one; None where it was not in time."""
        try:
            said, _ = self._process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._end()
            return None
        if self._process.returncode and self.name not in COMPLAINING:
            return ""
        return version_in(said.decode("utf-8", "replace")) or ""

    def _end(self) -> None:
        """With all that it started: whoever holds the pipe open must not hold us up."""
        with contextlib.suppress(OSError, AttributeError):  # Windows has no groups
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


def survey(root: Optional[Path]) -> dict[str, Any]:
    """{"tools": …, "languages": …} by name; answers are kept below `root`.

    A program is {"path", "version", "sha256"}, with a "reason" where it did not tell its version,
    and "features" where its builds differ in what they can do; None where it is not on the PATH.
    """
    arguments = {**NEEDED, **SERVERS, **LANGUAGES, **PYTHONS}
    paths = {name: path for name in arguments if (path := shutil.which(name))}
    kept = _recall(root)
    told = {name: kept[path] for name, path in paths.items() if _is_fresh(kept.get(path), path)}
    asked = _ask({name: path for name, path in paths.items() if name not in told}, arguments)
    told.update(asked)
    if asked:
        _keep(root, told)
    shown = {name: _shown(program) for name, program in told.items()}
    return {
        "tools": {name: shown.get(name) for name in (*NEEDED, *SERVERS)},
        "languages": {
            **{name: shown.get(name) for name in LANGUAGES},
            **{name: shown[name] for name in PYTHONS if name in told and told[name]["version"]},
        },
    }


def _shown(program: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: program[name] or None for name in ("path", "version", "sha256")}
    if program["features"] is not None:
        shown["features"] = program["features"]
    why = "it did not answer in time" if program["version"] is None else "it told no version"
    return shown if shown["version"] else {**shown, "reason": why}


def _ask(paths: Mapping[str, str], arguments: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """All at once; whoever does not answer in time has no version."""
    began = time.monotonic()
    questions, told = [], {}
    for name, path in paths.items():
        told[name] = {
            "path": path,
            "version": None,
            "sha256": None,
            "features": None,
            **_validity(path),
        }
        with contextlib.suppress(OSError):
            questions.append(Question(name, path, arguments[name]))
    for name in NEEDED:
        if name in told:
            told[name]["sha256"] = _sha256(paths[name])
    for question in questions:
        limit_s = _NEEDED_S if question.name in NEEDED else _WELCOME_S
        told[question.name]["version"] = question.answer(began + limit_s)
    for name in ARGUMENTS:
        if name in told:
            _complete(name, told[name])
    return told


def _complete(name: str, program: dict[str, Any]) -> None:
    """What a load tool does not say of itself."""
    if program["version"] == "":
        program["version"] = module_version(program["path"]) or ""
    program["features"] = features_of(name, program["path"])


def _recall(root: Optional[Path]) -> dict[str, Any]:
    """What was told before, by path; nothing after a day."""
    with contextlib.suppress(OSError, ValueError):
        if root:
            kept: dict[str, Any] = json.loads((root / CACHE).read_bytes())
            return {path: one for path, one in kept.items() if time.time() < one["until"]}
    return {}


def _keep(root: Optional[Path], told: Mapping[str, dict[str, Any]]) -> None:
    """Keep all answers, also those that tell no version; who was not in time is asked again."""
    answers = {one["path"]: one for one in told.values() if one["version"] is not None}
    if root and root.is_dir():
        with contextlib.suppress(OSError):  # a full disk is no reason to know nothing
            write_json(root / CACHE, answers)


def _is_fresh(kept: Optional[dict[str, Any]], path: str) -> bool:
    return kept is not None and kept["stamp"] == _validity(path)["stamp"]


def _validity(path: str) -> dict[str, Any]:
    found = os.stat(path)
    return {"stamp": [_FORMAT, found.st_mtime_ns, found.st_size], "until": time.time() + _FRESH_S}


def _sha256(path: str) -> Optional[str]:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None
