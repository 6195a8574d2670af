"""One run of the load tool: start, watch, interrupt at its wall limit."""

from __future__ import annotations

import functools
import hashlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, Optional

from ..errors import TrialFailed
from ..paths import StepDir, build_stdout_path, resolve_below
from ..platform.process_output import ProcessOutput
from ..platform.processes import Child, build_child_environment
from ..platform.program_versions import read_tool_version
from ..redaction import Redactor
from ..sandbox.directories import Sandbox
from ..sandbox.placeholders import fill_placeholders
from ..sandbox.user import Account
from ..sandbox.variables import fill_variables
from ..step.plan import Limits, Load, Tool, Trial

INTERRUPT_GRACE_S = 10.0
POLL_S = 0.25


@dataclass(frozen=True)
class LoadOutcome:
    """The end of a load. `hung`: the tool was interrupted at its wall limit.

    `limits`: those of the tool as the kernel applied them.
    """

    argv: list[str]
    rc: int
    signal: Optional[int]
    started_at: float
    ended_at: float
    cpu_s: Optional[float]
    limits: dict[str, Any]
    hung: bool


def find_tool(root: Path, tool: Tool) -> Path:
    """Return the program of the tool; TrialFailed if it is missing or not executable."""
    path = Path(tool.path) if os.path.isabs(tool.path) else resolve_below(root, tool.path)
    if not os.access(path, os.X_OK) or path.is_dir():
        raise TrialFailed(
            "tool_missing", f"{tool.name} is not at {path}, or cannot be run; run the job again"
        )
    # Keep symbolic links: the Python of a virtual environment is one.
    return Path(os.path.abspath(path))


def read_version(tool: Tool, path: Path) -> Optional[str]:
    """Return the version of the tool, from its own output; None if unknown."""
    return _read_version(tool.name, path, *_identify_file(path))


def hash_program(path: Path) -> str:
    """Return the SHA-256 of a program; the agent itself reads it."""
    return _hash_program(path, *_identify_file(path))


def _identify_file(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


@functools.lru_cache(maxsize=8)
def _read_version(name: str, path: Path, _written_ns: int, _size: int) -> Optional[str]:
    return read_tool_version(name, path)


@functools.lru_cache(maxsize=8)
def _hash_program(path: Path, _written_ns: int, _size: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run_load(
    step: StepDir,
    trial: Trial,
    load: Load,
    placeholders: Mapping[str, str],
    path: Sequence[str],
    while_running: Callable[[Child, float], None],
    sandbox: Sandbox,
    on_load_side: Callable[[], AbstractContextManager[None]],
) -> LoadOutcome:
    """Run the tool until it ends; `while_running(child, seconds)` is called while it runs.

    `placeholders` has at least "out": the file of stdout is next to it. `path`: the first folders
    of its PATH. The tool starts within `on_load_side`.

    At the wall limit the tool gets SIGINT, on which oha writes its report, and SIGKILL 10 s later.
    """
    program = _build_program(step, trial, load, placeholders, sandbox)
    report = Path(placeholders["out"])
    # A load tool gets no secret: its files are redacted after its end, which costs it nothing.
    redactor = sandbox.secrets.redactor if trial.tool.is_measured_code else Redactor()
    stderr = ProcessOutput(step.trial(trial.id) / "tool.stderr", "ab", redactor)
    stdout = ProcessOutput(build_stdout_path(report), "wb", redactor)
    with stderr.open() as errors, stdout.open() as out:
        started_at, start = time.time(), time.monotonic()
        own = build_child_environment(step.path, {"NO_COLOR": "1", **program.env}, path)
        with on_load_side():
            child = _spawn(program, trial.tool.limits, own, out, errors)
    try:
        hung = not _watch(child, start, load.wall_limit_s, while_running)
    finally:
        child.kill()
        for output in (stderr, stdout):
            output.finish()
        if not trial.tool.is_measured_code:
            for file in (stderr.path, stdout.path, report):
                sandbox.secrets.redactor.redact_file(file)
    return _build_outcome(program, child, started_at, hung)


def _build_outcome(program: _Program, child: Child, started_at: float, hung: bool) -> LoadOutcome:
    """Return how a tool that has just ended ran."""
    code = child.exit_code
    assert code is not None
    return LoadOutcome(
        argv=program.argv,
        rc=code,
        signal=-code if code < 0 else None,
        started_at=started_at,
        ended_at=time.time(),
        cpu_s=child.cpu_s,
        limits=child.applied,
        hung=hung,
    )


class _Program(NamedTuple):
    argv: list[str]
    env: Mapping[str, str]
    cwd: Path
    account: Optional[Account]


def _build_program(
    step: StepDir, trial: Trial, load: Load, placeholders: Mapping[str, str], sandbox: Sandbox
) -> _Program:
    """Return the command of the tool with its user.

    A load tool runs as the agent's login, so that measured code cannot reach it. A script in place
    of a load tool is measured code itself.
    """
    folder, account, home = step.trial(trial.id), None, {}
    if trial.tool.is_measured_code:
        placeholders = {**placeholders, **sandbox.placeholders()}
        folder, account = sandbox.cwd(folder), sandbox.account
        home = sandbox.environment(trial.tree)
    env = fill_variables(load.env, placeholders, sandbox.secrets)
    return _Program(fill_placeholders(load.argv, placeholders), {**home, **env}, folder, account)


def _spawn(
    program: _Program, limits: Limits, env: Mapping[str, str], out: IO[bytes], errors: IO[bytes]
) -> Child:
    try:
        return Child(
            program.argv,
            cwd=program.cwd,
            env=env,
            stdout=out,
            stderr=errors,
            limits=limits,
            name="tool",
            adopts=False,
            account=program.account,
        )
    except OSError as error:
        why = f"{program.argv[0]} cannot be started: {error}"
        raise TrialFailed("tool_missing", why) from error


def _watch(
    child: Child, start: float, limit_s: float, while_running: Callable[[Child, float], None]
) -> bool:
    """Return False if the tool was interrupted."""
    interrupted = False
    while child.exit_code is None:
        spent = time.monotonic() - start
        if spent > limit_s and not interrupted:
            child.send(signal.SIGINT)
            interrupted = True
        if spent > limit_s + INTERRUPT_GRACE_S:
            break
        while_running(child, spent)
        child.wait(POLL_S)
    return not interrupted
