"""Which load tools, servers, languages and other programs a host has, and in which versions.

They are looked for on the PATH and where managers of versions keep theirs (pyenv, rustup, Go).
Asking costs processes, so the answers are kept in `programs.json` of the work directory: a program
is asked again when its file has changed, or after a day.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

from ..files import write_json
from .program_versions import ARGUMENTS, COMPLAINING, features_of, module_version, version_in

CACHE = "programs.json"
_FRESH_S = 86_400.0
#: Of an answer; what an older agent kept is asked again.
_FORMAT = 2
#: How long the load tools, git, what a job wants and what builds are told apart by may take, and
#: all the others: a language that is told one time and not the next would be built with anew.
_NEEDED_S, _WELCOME_S = 5.0, 0.8
#: Programs that a job of Pitwall itself needs; of these the contents are known by their hash.
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
#: Told where they are there, and not missed where they are not.
PYTHONS = {f"python{version}": "--version" for version in _PYTHONS}
OTHERS = {
    **dict.fromkeys(("pypy3", "ghc", "bun", "gcc", "make", "cmake", "mkcert"), "--version"),
    **dict.fromkeys(("caddy", "traefik"), "version"),
    "haproxy": "-v",
    "javac": "-version",
}
#: Where Go's own installer puts it.
GO = Path("/usr/local/go/bin")
#: How a program is asked that a job wants, and that is none of those above.
_USUAL = "--version"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._+-]*\Z")
#: Programs there start whichever version is chosen, if any: the versions themselves are better.
_SHIMS = "shims"


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


class Place(NamedTuple):
    """Where a program is. `beyond`: a shell would find another one by its name, or none."""

    path: str
    beyond: bool


def survey(root: Optional[Path], wanted: Sequence[str] = ()) -> dict[str, Any]:
    """{"tools": …, "languages": …, "programs": …} by name; answers are kept below `root`.

    A program is {"path", "version", "sha256"}, with a "reason" where it did not tell its version,
    "features" where its builds differ in what they can do, and "beyond_path" where a shell would
    not find it by its name; None where it was not found. Load tools, git, languages and `wanted`
    are given time to answer.
    """
    known = {**NEEDED, **SERVERS, **LANGUAGES, **PYTHONS, **OTHERS}
    more = {name: _USUAL for name in wanted if name not in known and _NAME.match(name)}
    arguments = {**known, **more}
    places = _places(arguments)
    paths = {name: place.path for name, place in places.items()}
    kept = _recall(root)
    told = {
        name: kept[path]
        for name, path in paths.items()
        if _is_fresh(kept.get(path), path)
        # What a job wants is asked again until it tells: a toolchain may have been missing.
        and (kept[path]["version"] or name not in wanted)
    }
    missing = {name: path for name, path in paths.items() if name not in told}
    asked = _ask(missing, arguments, {*NEEDED, *LANGUAGES, *PYTHONS, *wanted})
    told.update(asked)
    if asked:
        _keep(root, {**kept, **{one["path"]: one for one in told.values()}})
    shown = {
        name: _shown(program, places[name].beyond)
        for name, program in told.items()
        if program["version"] or not _is_shim(program["path"])
    }
    return {
        "tools": {name: shown.get(name) for name in (*NEEDED, *SERVERS)},
        "languages": {
            **{name: shown.get(name) for name in LANGUAGES},
            **{name: shown[name] for name in PYTHONS if name in shown and told[name]["version"]},
        },
        "programs": {
            **{name: shown[name] for name in OTHERS if name in shown},
            **{name: shown.get(name) for name in more},
        },
    }


def _places(names: Iterable[str]) -> dict[str, Place]:
    """Of those that are there; of load tools and git only what is on the PATH."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    real = [folder for folder in folders if os.path.basename(folder) != _SHIMS]
    elsewhere = os.pathsep.join([*real, *managed()])
    found = {}
    for name in names:
        usual = shutil.which(name)
        better = None
        if name not in NEEDED and (usual is None or _is_shim(usual)):
            better = shutil.which(name, path=elsewhere)
        if better or usual:
            found[name] = Place(better or usual or "", bool(better))
    return found


def managed() -> list[str]:
    """The folders in which managers of versions keep programs, newer ones first."""
    home = Path.home()
    pythons = sorted((home / ".pyenv/versions").glob("*/bin"), key=_version_of, reverse=True)
    others = (home / ".cargo/bin", GO, home / "go/bin")
    return [str(folder) for folder in (*pythons, *others)]


def _version_of(folder: Path) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", folder.parent.name)]


def _is_shim(path: str) -> bool:
    return os.path.basename(os.path.dirname(path)) == _SHIMS


def _shown(program: Mapping[str, Any], beyond: bool) -> dict[str, Any]:
    shown = {name: program[name] or None for name in ("path", "version", "sha256")}
    if program["features"] is not None:
        shown["features"] = program["features"]
    if beyond:
        shown["beyond_path"] = True
    why = "it did not answer in time" if program["version"] is None else "it told no version"
    return shown if shown["version"] else {**shown, "reason": why}


def _ask(
    paths: Mapping[str, str], arguments: Mapping[str, str], needed: Container[str]
) -> dict[str, dict[str, Any]]:
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
        limit_s = _NEEDED_S if question.name in needed else _WELCOME_S
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
    answers = {path: one for path, one in told.items() if one["version"] is not None}
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
