"""Child processes on Linux and macOS: own session each, whole trees are killed.

On Linux the supervisor is the reaper of its orphans, so a grandchild that left its session
(`setsid`, a daemon) still ends up below it; and the kernel kills direct children when the
supervisor itself is killed.
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
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Optional

from ..errors import AgentError
from ..sandbox.user import Account
from .limits import NONE, Confinement, Limits, confine
from .linux import cgroups
from .process_table import HAS_PROC, family
from .system import marked, of_tree, snapshot
from .usage import Usage

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_CHILD_SUBREAPER = 36
#: Our own direct children; whoever else has us for a parent is an orphan.
_started: set[int] = set()
_libc = ctypes.CDLL(None) if sys.platform.startswith("linux") else None


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends (Linux; elsewhere nothing)."""
    if _libc:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        cgroups.remove_left()


class Child:
    """One process in a session of its own, with the tree that grows from it."""

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
        """Raises OSError where the program cannot be started, AgentError for CPUs not to be had.

        `limits` hold from the program's first instruction on; `applied` says which of them do.
        `adopts`: processes that left their parent behind are taken for this child's. Of the
        children that run at one time, one may adopt. `name` is what messages call it. `account`:
        whom it runs as, None = as we do.
        """
        self.name = name or Path(argv[0]).name
        self._confinement = confine(limits, account is not None)
        try:
            self._popen = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=_prepare(os.getpid(), self._confinement, account),
            )
        except BaseException as error:
            self._confinement.abandon()
            if isinstance(error, subprocess.SubprocessError):
                raise AgentError(_not_prepared(self.name, limits, account)) from error
            raise
        self.pid = self._popen.pid
        self._adopts = adopts
        _started.add(self.pid)
        self.applied = {**self._confinement.applied(), "user": account.name if account else None}
        self.cpu_s: Optional[float] = None
        self.peak_rss_bytes: Optional[int] = None

    @property
    def exit_code(self) -> Optional[int]:
        """None while it runs; minus the signal number where a signal ended it."""
        if self._popen.returncode is None:
            self._reap(os.WNOHANG)
        return self._popen.returncode

    def _reap(self, options: int) -> None:
        pid, status, rusage = os.wait4(self.pid, options)
        if pid:
            self._popen.returncode = exit_code_of(status)
            self.cpu_s = rusage.ru_utime + rusage.ru_stime
            self.peak_rss_bytes = rusage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    def wait(self, timeout_s: float) -> None:
        """Until it ends, at most `timeout_s`; the kernel wakes us where it can."""
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

    def tree(self) -> set[int]:
        """Pids of the tree, with the orphans that we adopted if this child answers for them."""
        table = snapshot()
        roots = {self.pid}
        if self._adopts and HAS_PROC:
            roots |= {
                process.pid
                for process in table.values()
                if process.parent == os.getpid()
                # An orphan in the session of another child is that one's.
                and _started.isdisjoint({process.pid, process.session} - {self.pid})
            }
        roots |= self._confinement.members()
        return {pid for pid in family(table, roots) if pid in table} - {os.getpid()}

    def usage(self) -> Optional[Usage]:
        """What the living processes of the tree used so far; None where there are none."""
        return of_tree(self.tree())

    def stop(self, grace_s: float) -> None:
        """Ask the process to end, then kill whatever is left of its tree."""
        members = self.tree() if not HAS_PROC else set()
        self.send(signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while self.exit_code is None and time.monotonic() < deadline:
            time.sleep(0.01)
        self.kill(members)

    def end_session(self) -> None:
        """Kill the process and what stayed in its session or below it, adopted orphans excepted."""

        def relatives() -> set[int]:
            table = snapshot()
            own = {p.pid for p in table.values() if self.pid in (p.pid, p.group, p.session)}
            return family(table, own) if own else set()

        kill_all(relatives)
        self._end()

    def kill(self, known: Iterable[int] = ()) -> None:
        """Kill the tree, and `known` members that may have left it; returns when they are gone."""
        kill_all(lambda: self.tree() | set(known))
        self._end()

    def _end(self) -> None:
        if self._popen.returncode is None:
            self._reap(0)
        self._confinement.close(self.applied)


def exit_code_of(status: int) -> int:
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _prepare(
    parent: int, confinement: Confinement, account: Optional[Account]
) -> Callable[[], None]:
    def before_the_program() -> None:
        # Memory with secrets, or gigabytes of it, is not left behind on a host.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        confinement.enter()
        if account is not None:
            account.become()
        if _libc:
            # Only now: the kernel forgets it where a process becomes another user.
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # it died before we could ask
                os._exit(1)
            # What we start never becomes more than we are, by sudo or a file with its own rights.
            _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)

    return before_the_program


def _not_prepared(name: str, limits: Limits, account: Optional[Account]) -> str:
    who = f" as {account.name}" if account else ""
    return f"{name} cannot run{who} with {limits}: the kernel refused it before its start"


def kill_all(members: Any, limit_s: float = 5.0) -> None:
    """SIGKILL what `members()` names, again and again until it names nobody alive."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        table = snapshot()
        alive = [pid for pid in members() if pid in table and not table[pid].zombie]
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not alive:
            return
        time.sleep(0.01)


def kill_descendants() -> None:
    """Kill all that lives below this process, and reap what was adopted."""

    def below_us() -> set[int]:
        table = snapshot()
        children = {item.pid for item in table.values() if item.parent == os.getpid()}
        return family(table, children) - {os.getpid()} if children else set()

    kill_all(below_us)
    reap_orphans(())


def reap_orphans(children: Iterable[int]) -> None:
    """Collect adopted processes that ended, all but our own `children`."""
    for process in snapshot().values():
        if process.zombie and process.parent == os.getpid() and process.pid not in set(children):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def kill_marked(variable: str) -> bool:
    """Kill what a dead supervisor left behind, by `NAME=value` in the environment of it all.

    True if there was anything. Control groups of dead supervisors go, too.
    """
    left = marked(variable)
    kill_all(lambda: family(snapshot(), left) - {os.getpid()} if left else set())
    return bool(cgroups.remove_left()) or bool(left)
