"""Child processes on Linux and macOS: each has its own session, and whole trees are killed.

On Linux the supervisor is the subreaper of its orphans, so that a grandchild that left its session
(`setsid`, a daemon) stays below it. The kernel kills direct children when the supervisor is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Optional

from ..errors import Aborted, AgentError
from ..sandbox.user import Account
from .descriptors import close_others
from .limits import FILE_BYTES, NONE, Confinement, Limits, confine
from .linux import cgroups, systemd_scope
from .process_table import HAS_PROC, ProcessTable, find_family
from .system import find_marked, read_process_table, read_tree_usage
from .usage import Usage

#: A killed process that exists for longer will not end: the kernel waits for a device.
KILL_LIMIT_S = 10.0
_MOST_NAMED = 5
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_CHILD_SUBREAPER = 36
#: Direct children that this process started; any other child is an adopted orphan.
_started: set[int] = set()
#: Those of them that run code of the agent, and belong to no `Child`.
_helpers: set[int] = set()
_libc = ctypes.CDLL(None) if sys.platform.startswith("linux") else None


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent ends, in a scope of systemd (Linux only)."""
    if _libc:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        systemd_scope.enter_scope()
        cgroups.remove_orphans()


class Child:
    """One process in its own session, with its descendants."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdout: IO[Any],
        stderr: IO[Any],
        limits: Limits = NONE,
        name: str = "",
        adopts: bool = True,
        account: Optional[Account] = None,
    ) -> None:
        """Raises OSError if the program cannot be started, AgentError for unavailable CPUs.

        `limits` apply from the first instruction of the program on; `applied` contains those that
        are enforced. `adopts`: orphans count as descendants of this child; only one of the running
        children may adopt. `name`: its name in messages. `account`: the user it runs as, None = the
        agent's.
        """
        self.name = name or Path(argv[0]).name
        self._confinement = confine(limits, account is not None)
        prepare = _prepare(os.getpid(), self._confinement, account)
        try:
            self._popen = _start_program(argv, cwd, env, stdout, stderr, prepare)
        except subprocess.SubprocessError as error:
            self._confinement.abandon()
            raise AgentError(_describe_preparation_error(self.name, limits, account)) from error
        except BaseException:
            self._confinement.abandon()
            raise
        self.pid = self._popen.pid
        self._adopts = adopts
        _started.add(self.pid)
        self.applied = {**self._confinement.applied(), "user": account.name if account else None}
        self.cpu_s: Optional[float] = None
        self.peak_rss_bytes: Optional[int] = None

    @property
    def exit_code(self) -> Optional[int]:
        """None while it runs; minus the signal number if a signal ended it."""
        if self._popen.returncode is None:
            self._reap(os.WNOHANG)
        return self._popen.returncode

    def _reap(self, options: int) -> None:
        pid, status, rusage = os.wait4(self.pid, options)
        if pid:
            self._popen.returncode = convert_exit_status(status)
            self.cpu_s = rusage.ru_utime + rusage.ru_stime
            self.peak_rss_bytes = rusage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    def wait(self, timeout_s: float) -> None:
        """Wait until it ends, at most `timeout_s`."""
        if self.exit_code is not None:
            return
        try:
            fd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # not Linux, or older than 5.3
            time.sleep(min(timeout_s, 0.05))
            return
        try:
            select.select([fd], [], [], timeout_s)
        finally:
            os.close(fd)

    def send(self, number: int) -> None:
        if self.exit_code is None:
            os.kill(self.pid, number)

    def tree(self, table: Optional[ProcessTable] = None) -> set[int]:
        """Return the pids of the tree, with the adopted orphans if this child adopts.

        `table`: the process table if the caller has read it just now.
        """
        table = read_process_table() if table is None else table
        roots = {self.pid}
        if self._adopts and HAS_PROC:
            roots |= {
                process.pid
                for process in table.values()
                if process.parent == os.getpid()
                # An orphan in the session of another child belongs to that child.
                and _started.isdisjoint({process.pid, process.session} - {self.pid})
            }
        roots |= self._confinement.members()
        return {pid for pid in find_family(table, roots) if pid in table} - {os.getpid()}

    def usage(self) -> Optional[Usage]:
        """Return the usage so far of the living processes of the tree; None without any."""
        return read_tree_usage(self.tree())

    def oom_kills(self) -> int:
        """Return how many of its processes the kernel ended so far for lack of memory."""
        return self._confinement.oom_kills() or int(self.applied.get("oom_kills") or 0)

    def _read_back(self) -> None:
        self._confinement.read_back(self.pid if self.exit_code is None else None)

    def stop(self, grace_s: float) -> None:
        """Send SIGTERM, wait up to `grace_s`, then kill the rest of the tree."""
        members = self.tree() if not HAS_PROC else set()
        self._read_back()
        self.send(signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while self.exit_code is None and (left := deadline - time.monotonic()) > 0:
            self.wait(left)
        self.kill(members)

    def end_session(self) -> None:
        """Kill the process, its session and its descendants, but no adopted orphans."""

        def relatives(table: ProcessTable) -> set[int]:
            own = {p.pid for p in table.values() if self.pid in (p.pid, p.group, p.session)}
            return find_family(table, own) if own else set()

        self._end(kill_all(relatives))

    def kill(self, known: Iterable[int] = ()) -> None:
        """Kill the tree and the processes `known`; return when they are gone.

        Aborted if one of them does not end, such as one that waits for a dead disk.
        """
        self._read_back()
        self._end(kill_all(lambda table: self.tree(table) | set(known)))

    def _end(self, left: set[int]) -> None:
        # A process that was killed without its threads, one of which does not end, is a zombie.
        deadline = time.monotonic() + KILL_LIMIT_S
        while not left and self.exit_code is None:
            if time.monotonic() > deadline:
                left = {self.pid}
            time.sleep(0.002)
        if left:
            raise Aborted("unkillable", describe_unkillable(self.name, left))
        self._confinement.close(self.applied)


def convert_exit_status(status: int) -> int:
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _start_program(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    stdout: IO[Any],
    stderr: IO[Any],
    prepare: Callable[[], None],
) -> subprocess.Popen[Any]:
    """Start the program in its own session; `prepare` runs in it before its first instruction."""
    return subprocess.Popen(
        list(argv),
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        preexec_fn=prepare,
    )


def _prepare(
    parent: int, confinement: Confinement, account: Optional[Account]
) -> Callable[[], None]:
    def run_before_exec() -> None:
        # No core dumps: they can contain secrets or fill the disk.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        confinement.enter()
        if account is not None:
            account.become()
        if _libc:
            # After the switch of the user, which resets it.
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # it died before the call
                os._exit(1)
            # No child can gain privileges by sudo or a setuid file.
            _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)

    return run_before_exec


def _describe_preparation_error(name: str, limits: Limits, account: Optional[Account]) -> str:
    who = f" as {account.name}" if account else ""
    return f"{name} cannot run{who} with {limits}: the kernel refused it before its start"


def describe_unkillable(name: str, pids: Collection[int]) -> str:
    """Return that these processes exist after SIGKILL, with their states, and what to do."""
    named = ", ".join(f"{pid} ({_read_state(pid)})" for pid in sorted(pids)[:_MOST_NAMED])
    return (
        f"{name} does not end: process {named} still exists {KILL_LIMIT_S:g} s after SIGKILL. In "
        "state D it waits for a disk or a network file system; repair that, or restart the host"
    )


def _read_state(pid: int) -> str:
    """Return the name and the state of a process, such as `node, state D`."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return "unknown state"
    start, _, rest = text.rpartition(") ")
    return f"{start.partition('(')[2]}, state {rest[:1]}"


def kill_all(members: Callable[[ProcessTable], set[int]]) -> set[int]:
    """Send SIGKILL to the `members` of the process table repeatedly until none of them is alive.

    Return those that are still alive after KILL_LIMIT_S; the kernel does not end them.
    """
    deadline = time.monotonic() + KILL_LIMIT_S
    while True:
        table = read_process_table()
        alive = {pid for pid in members(table) if pid in table and not table[pid].zombie}
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not alive or time.monotonic() > deadline:
            return alive
        time.sleep(0.01)


def kill_descendants() -> None:
    """Kill all descendants of this process, and reap the adopted ones."""

    def descendants(table: ProcessTable) -> set[int]:
        children = {item.pid for item in table.values() if item.parent == os.getpid()}
        return find_family(table, children) - {os.getpid()} if children else set()

    kill_all(descendants)
    reap_orphans(())


def fork_helper(run: Callable[[], None], kept: Collection[int]) -> int:
    """Call `run` in a separate process and return its pid.

    It has only the file descriptors `kept`, and shares no lock of this process.
    """
    pid = os.fork()
    if pid:
        _started.add(pid)
        _helpers.add(pid)
        return pid
    try:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
        close_others(kept)
        run()
    finally:
        os._exit(0)


def await_helper(pid: int, timeout_s: float) -> bool:
    """Wait until a helper has ended; False if it still runs after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while pid in _helpers:
        try:
            ended = os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:  # it was reaped with the orphans
            ended = True
        if ended:
            _helpers.discard(pid)
        elif time.monotonic() > deadline:
            return False
        else:
            time.sleep(0.002)
    return True


def list_helpers() -> set[int]:
    return set(_helpers)


def reap_orphans(children: Iterable[int]) -> None:
    """Reap adopted processes that have ended, but not the started `children`."""
    for process in read_process_table().values():
        if process.zombie and process.parent == os.getpid() and process.pid not in set(children):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def kill_marked(variable: str) -> bool:
    """Kill the orphans of a dead supervisor, which have `NAME=value` in their environment.

    Also removes the control groups of dead supervisors. True if there was anything.
    """
    left = find_marked(variable)
    kill_all(lambda table: find_family(table, left) - {os.getpid()} if left else set())
    return bool(cgroups.remove_orphans()) or bool(left)


def describe_marked(variable: str) -> str:
    """Return which processes with `NAME=value` exist after they were killed; "" if none does."""
    marked, table = find_marked(variable), read_process_table()
    left = {pid for pid in marked if pid in table and not table[pid].zombie}
    return describe_unkillable("a process of the round", left) if left else ""
