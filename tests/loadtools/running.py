"""The agent's use of a load tool in a few lines: start it, and reduce its output.

A recording is what one measured load leaves behind, and its argv: `record.py` keeps some.
"""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.hostagent.paths import build_stdout_path
from agents.hostagent.readers.registry import READERS
from agents.hostagent.sandbox.placeholders import fill_placeholders
from orchestrator.dispatch.tls import make_certificates
from orchestrator.loadtools.model import LoadSpec, TrialReading
from orchestrator.loadtools.registry import TOOLS
from tests.support.programs import tool

HERE = Path(__file__).parent
#: What a machine that is busy with other tests does to a short load.
OF_A_BUSY_MACHINE = {"littles_law", "tool_bound", "contaminated", "no_steady_state"}


@contextlib.contextmanager
def serving(program: str, *arguments: str) -> Iterator[int]:
    """The port of target.py or cycling.py of this folder, which ends with the block."""
    argv = [sys.executable, str(HERE / program), *arguments]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            yield int(running.stdout.readline())
        finally:
            running.kill()


def tls_files(folder: Path) -> tuple[str, str, str]:
    """Paths of a throw-away CA, and of a certificate of 127.0.0.1 with its key."""
    made = make_certificates(["127.0.0.1"], now=datetime.now(UTC))
    paths = [folder / name for name in ("ca.pem", "cert.pem", "key.pem")]
    for path, text in zip(paths, (made.ca, made.cert, made.key), strict=True):
        path.write_text(text)
    ca, cert, key = map(str, paths)
    return ca, cert, key


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a measured load left in its folder, before anybody reduces it."""

    argv: list[str]
    rc: int
    out: Path
    raw: Path
    stderr: str
    started_at: float
    ended_at: float
    warmup_s: float


def run(
    name: str,
    spec: LoadSpec,
    port: int,
    folder: Path,
    words: Mapping[str, str] | None = None,
    extra: Sequence[str] = (),
) -> Left:
    """All starts of the load with one CPU, with `extra` flags; the last one's traces."""
    adapter = TOOLS[name]
    problems = adapter.problems(spec)
    assert not problems, problems
    for file, text in adapter.files(spec).items():
        (folder / file).write_text(text, newline="")
    out, raw = folder / "tool.json", folder / "rows.raw"
    known = {
        "tool": sys.executable if name == "script" else str(tool(name)),
        "address": "127.0.0.1",
        "port": str(port),
        "out": str(out),
        "rows": str(raw),
        "trial_dir": str(folder),
        "ca": str(folder / "ca.pem"),
        "tree": str(folder),
        **(words or {}),
    }
    for invocation in adapter.invocations(spec, 1):
        argv = fill_placeholders((invocation.argv[0], *extra, *invocation.argv[1:]), known)
        env = {key: fill_placeholders([value], known)[0] for key, value in invocation.env.items()}
        with open(build_stdout_path(out), "wb") as stdout:
            started_at = time.time()
            done = subprocess.run(
                argv,
                cwd=folder,
                env={"PATH": "/usr/bin:/bin", **env},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                timeout=invocation.wall_limit_s,
            )
    return Left(
        argv=argv, rc=done.returncode, out=out, raw=raw, stderr=done.stderr,
        started_at=started_at, ended_at=time.time(), warmup_s=invocation.warmup_s,
    )  # fmt: skip


def read_rows(name: str, left: Left, good_statuses: Sequence[int] = (200,)) -> dict[str, Any]:
    read = READERS[TOOLS[name].reader]
    rows = read(left.out.parent, left.out, left.raw, left.warmup_s, good_statuses)
    return dict(json.loads(json.dumps(rows)))


def build_result(left: Left, **changes: Any) -> dict[str, Any]:
    return {
        "argv": left.argv,
        "rc": left.rc,
        "signal": None,
        "server_exit": None,
        "hung": False,
        "load_started_at": left.started_at,
        "load_ended_at": left.ended_at,
        "tool": {"name": "any", "version": "1.2.3"},
        "tool_cpus": 1,
        **changes,
    }


def measure(
    name: str, spec: LoadSpec, port: int, folder: Path, words: Mapping[str, str] | None = None
) -> TrialReading:
    left = run(name, spec, port, folder, words)
    assert left.rc == 0, left.stderr
    rows = read_rows(name, left, spec.good_statuses)
    return TOOLS[name].parse(spec, left.out.read_bytes(), rows, build_result(left))


def serious(reading: TrialReading) -> set[str]:
    """Codes that a busy machine cannot cause."""
    return set(reading.validity.codes) - OF_A_BUSY_MACHINE
