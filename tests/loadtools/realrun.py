"""A real load tool against the real server of target.py, as the agent would run it."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from agents.hostagent.readers import READERS
from orchestrator.dispatch.tls import make_certificates
from orchestrator.loadtools.model import LoadSpec, TrialReading
from orchestrator.loadtools.registry import TOOLS
from tests.support.tools import tool

PROTOS = Path(__file__).parent / "protos"
TARGET = Path(__file__).parent / "target.py"


class Ran(NamedTuple):
    reading: TrialReading
    rows: dict
    stderr: str


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """The port of a target of its own."""
    with subprocess.Popen(
        [sys.executable, str(TARGET), *arguments], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def with_tls(folder: Path) -> Sequence[str]:
    """The target's arguments; the authority is ca.pem in `folder`."""
    made = make_certificates([], now=datetime.now(UTC))
    for name in ("ca", "cert", "key"):
        (folder / f"{name}.pem").write_text(getattr(made, name))
    return ("--tls", str(folder / "cert.pem"), str(folder / "key.pem"))


def run(name: str, spec: LoadSpec, port: str, folder: Path) -> Ran:
    """All starts of the tool, and the reading of the last one."""
    adapter = TOOLS[name]
    assert adapter.problems(spec) == []
    for file, text in adapter.files(spec).items():
        (folder / file).write_text(text)
    out, raw = folder / "tool.json", folder / "rows.raw"
    words = {
        "tool": str(tool(name)), "address": "127.0.0.1", "port": port, "out": str(out),
        "rows": str(raw), "trial_dir": str(folder), "tree": str(PROTOS),
        "ca": str(folder / "ca.pem"), "rate": "100",
    }  # fmt: skip
    for invocation in adapter.invocations(spec, 1):
        started = time.time()
        done = subprocess.run(
            [_filled(argument, words) for argument in invocation.argv],
            env={
                "PATH": os.defpath, "HOME": str(folder), "NO_COLOR": "1",
                **{key: _filled(text, words) for key, text in invocation.env.items()},
            },
            cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=invocation.wall_limit_s,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    rows = READERS[adapter.reader](folder, out, raw, invocation.warmup_s)
    result = {
        "rc": 0, "signal": None, "load_started_at": started, "load_ended_at": time.time(),
        "tool": {"name": name, "version": "1.2.3"}, "rate": None,
    }  # fmt: skip
    return Ran(adapter.parse(spec, out.read_bytes(), rows, result), rows, done.stderr)


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", value)
    return text


def serious(reading: TrialReading) -> set[str]:
    """Codes that a busy machine cannot cause."""
    busy = {"littles_law", "tool_bound", "unsteady", "underdelivered", "contaminated"}
    return {each.code for each in reading.validity.reasons} - busy
