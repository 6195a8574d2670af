"""Lighthouse, installed below .pitwall/bench from the lock file next to this module."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devstack.bootstrap import compute_fingerprint
from devstack.filelock import wait_for_lock
from devstack.places import STATE
from tests.browser.chromium import ARGUMENTS, find_chromium

HERE = Path(__file__).parent
FOLDER = STATE / "bench" / "lighthouse"
FILES = ("package.json", "package-lock.json", "measure.mjs")


class MissingError(Exception):
    """A program is missing or failed; the text says which, and what to do."""


def find_programs() -> dict[str, str]:
    """Return the paths of Chromium, node and npm. MissingError names what is missing."""
    paths = {
        "chromium": find_chromium(shell=False),
        "node": shutil.which("node"),
        "npm": shutil.which("npm"),
    }
    missing = [name for name, path in paths.items() if path is None]
    if missing:
        raise MissingError(
            f"make bench-pages needs {' and '.join(missing)}: install node 18.16 or newer with npm,"
            " and Chromium, so that they are on PATH"
        )
    return {name: str(path) for name, path in paths.items()}


def install(npm: str) -> None:
    """Install exactly what the lock file names, by hash, without running install scripts."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    stamp = FOLDER / "installed"
    wanted = compute_fingerprint(HERE / "package-lock.json")
    with wait_for_lock(FOLDER.parent / "lighthouse.lock", "pitwall: another npm runs; waiting."):
        for name in FILES:
            shutil.copy(HERE / name, FOLDER / name)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        stamp.unlink(missing_ok=True)
        argv = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        done = subprocess.run(argv, cwd=FOLDER, capture_output=True, text=True)
        if done.returncode != 0:
            raise MissingError(f"npm could not install Lighthouse in {FOLDER}:\n{done.stderr}")
        stamp.write_text(wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lighthouse:
    """Lighthouse with the browser of a user who is logged in by this cookie."""

    chromium: str
    node: str
    cookie: str

    def audit(self, addresses: Sequence[Mapping[str, str]]) -> Iterator[dict[str, Any]]:
        """Yield the result of each (name, url, form), one after the other."""
        if not addresses:
            return
        plan = {
            "chromium": self.chromium,
            "flags": ARGUMENTS,
            "cookie": self.cookie,
            "audits": list(addresses),
        }
        argv = [self.node, str(FOLDER / "measure.mjs"), json.dumps(plan)]
        with subprocess.Popen(argv, cwd=FOLDER, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                yield json.loads(line)
        if process.returncode != 0:
            raise MissingError("Lighthouse did not get to its end: see above")
