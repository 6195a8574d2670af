"""One run of the load tool under a wall limit."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from .errors import TrialFailed
from .processes import Child
from .pulse import Pulse

#: SIGTERM would lose all output of oha; SIGINT gets the JSON of the part done.
GRACE_S = 10.0


@dataclass(frozen=True)
class Outcome:
    """`exit_code` is minus the signal number where a signal ended the tool."""

    argv: Sequence[str]
    exit_code: int
    started_at: float
    ended_at: float
    wall_s: float
    cpu_s: Optional[float]
    hung: bool


def run(
    argv: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str],
    cpus: Optional[Sequence[int]],
    wall_limit_s: float,
    pulse: Pulse,
    watch: Callable[[Child, float], float],
    grace_s: float = GRACE_S,
) -> Outcome:
    """Run `argv` in `folder`; its output goes to tool.stdout and tool.stderr there.

    `watch(child, now)` is called at the start and again after as many seconds as it returns.
    At the limit the tool gets SIGINT and, `grace_s` later, SIGKILL. Raises Aborted and TrialFailed
    `tool_missing` with nothing left running.
    """
    started_at, began = time.time(), time.monotonic()
    child = _start(argv, folder, env, cpus)
    try:
        hung = _attend(child, began + wall_limit_s, grace_s, pulse, watch)
    finally:
        # Only the tool's own session: whatever else lives now belongs to the server.
        child.end_session()
    return Outcome(
        argv=argv,
        exit_code=child.exit_code or 0,
        started_at=started_at,
        ended_at=time.time(),
        wall_s=time.monotonic() - began,
        cpu_s=child.cpu_s,
        hung=hung,
    )


def _start(
    argv: Sequence[str], folder: Path, env: Mapping[str, str], cpus: Optional[Sequence[int]]
) -> Child:
    with open(folder / "tool.stdout", "wb") as out, open(folder / "tool.stderr", "wb") as err:
        try:
            return Child(argv, cwd=folder, env=env, stdout=out, stderr=err, cpus=cpus)
        except OSError as error:
            text = f"the load tool {argv[0]} could not be started: {error}"
            raise TrialFailed("tool_missing", text) from error


def _attend(
    child: Child,
    limit: float,
    grace_s: float,
    pulse: Pulse,
    watch: Callable[[Child, float], float],
) -> bool:
    """Wait for the tool's end; True if it had to be interrupted."""
    hung = False
    look = time.monotonic()
    while child.exit_code is None:
        now = time.monotonic()
        if now >= limit:
            child.send(signal.SIGKILL if hung else signal.SIGINT)
            hung, limit = True, now + grace_s
        if now >= look:
            look = now + watch(child, now)
        pulse.wait(min(look, limit) - time.monotonic())
    return hung
