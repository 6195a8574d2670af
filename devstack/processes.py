"""One child process in a separate session, with a log, that ends when we die."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PR_SET_PDEATHSIG = 1
# Loaded here: between fork and exec it is too late to load anything.
LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run. `log` None: it has our terminal. `user`: (uid, gid) to run as."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    log: Path | None = None
    user: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A command that runs until it is stopped.

    `ready` is called until it is true. `stop` is a list of (signal, seconds to wait); after the
    last one the group is killed. `restarts` is how often in a row an unexpected exit is followed by
    a restart. During `start_retry_s` an exit before readiness is attributed to a leftover that will
    disappear.
    """

    command: Command
    ready: Callable[[], bool]
    ready_timeout_s: float = 30.0
    start_retry_s: float = 0.0
    stop: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 10.0),)
    restarts: int = 0


@dataclass(slots=True, kw_only=True)
class Child:
    """A started process. It leads the group that has its number."""

    command: Command
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def pid(self) -> int:
        return self.process.pid

    def status(self) -> int | None:
        """None while it lives, otherwise its exit status, or minus the signal that ended it."""
        return self.process.poll()

    def send(self, signum: int) -> None:
        """Signal only the leader: servers inform their own children."""
        if self.status() is None:
            self.process.send_signal(signum)

    def kill_group(self) -> None:
        """Kill the rest of the group, including the leader, and reap the leader.

        If the leader still lives, its descendants are killed too: PostgreSQL puts each of its
        children into a separate session.
        """
        others = find_descendants(self.pid) if self.status() is None else []
        # A group of zombies returns "not permitted" on macOS.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        for other in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(other, signal.SIGKILL)
        self.process.wait()


def spawn(command: Command, death_signal: int = signal.SIGTERM) -> Child:
    """Start a command; on Linux the kernel sends it `death_signal` when we die."""
    log = open_log(command.log)
    identity = command.user or (None, None)
    try:
        process = subprocess.Popen(
            command.argv,
            env=dict(command.env),
            cwd=command.cwd,
            stdin=None if log is None else subprocess.DEVNULL,
            stdout=log,
            stderr=None if log is None else subprocess.STDOUT,
            start_new_session=True,
            user=identity[0],
            group=identity[1],
            extra_groups=None if command.user is None else [],
            preexec_fn=functools.partial(die_with_parent, os.getpid(), death_signal),
        )
    finally:
        if log is not None:
            os.close(log)
    return Child(command=command, process=process)


def die_with_parent(parent: int, signum: int) -> None:
    if LIBC is None:
        return
    LIBC.prctl(PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
    # The parent may have died before the kernel was informed.
    if os.getppid() != parent:
        os._exit(1)


def open_log(path: Path | None) -> int | None:
    if path is None:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def put_aside(log: Path) -> None:
    """Keep the previous log under another name."""
    with contextlib.suppress(FileNotFoundError):
        log.replace(log.with_name(log.name + ".1"))


def log_tail(log: Path | None, lines: int = 20) -> str:
    if log is None or not log.exists():
        return ""
    text = "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    return f"The end of {log}:\n{text}"


def find_descendants(pid: int) -> list[int]:
    """Return the processes below one, as far as `ps` or /proc shows them."""
    parents = map_parents()
    pids = [pid]
    for ancestor in pids:
        pids += [child for child, parent in parents.items() if parent == ancestor]
    return pids[1:]


def map_parents() -> dict[int, int]:
    if sys.platform == "linux":
        return dict(iter_parents())
    stdout = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True).stdout
    pairs = (line.split() for line in stdout.splitlines())
    return {int(pid): int(parent) for pid, parent in pairs}


def iter_parents() -> Iterator[tuple[int, int]]:
    for folder in Path("/proc").glob("[0-9]*"):
        # It may end in the meantime.
        with contextlib.suppress(OSError):
            # After the name, which may contain anything: state, parent.
            yield int(folder.name), int((folder / "stat").read_text().rpartition(")")[2].split()[1])
