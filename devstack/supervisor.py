"""Starts child processes in order, watches them, and leaves none behind.

    with Supervisor() as supervisor:
        supervisor.start(database)
        supervisor.on_stop(command)
        supervisor.start(web)
        supervisor.watch()

Leaving the block stops everything in reverse order. There is one thread and one loop: signals only
set a flag, and every wait checks the flags. Three mechanisms ensure that no process survives:

1. The orderly stop.
2. SIGKILL to every group at the second Ctrl-C.
3. If we are killed: Linux's death signal and the guard process (guard.py), which also knows groups.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from devstack.errors import DevstackError
from devstack.interrupts import Interrupts
from devstack.processes import Child, Command, Service, log_tail, put_aside, spawn

POLL_S = 0.05
WATCH_S = 0.5
COMMAND_GRACE_S = 20.0
STOP_COMMAND_TIMEOUT_S = 30.0
LIVED_LONG_S = 60.0
GUARD = Path(__file__).with_name("guard.py")


class ServiceError(DevstackError):
    """A service could not be started or died; the text has the end of its log."""


@dataclass(slots=True, kw_only=True)
class Running:
    service: Service
    child: Child
    born: float
    failures: int = 0
    restart_at: float | None = None

    @property
    def name(self) -> str:
        return self.service.command.name


class Supervisor:
    def __init__(self, keep_open: Iterable[int] = (), *, guard_grace_s: float = 8.0) -> None:
        """`keep_open`: descriptors (of locks) to hold until the last child is gone.

        `guard_grace_s`: the time that children have to end by themselves if we are killed.
        """
        self._guard_grace_s = guard_grace_s
        self._started: list[Running | Command] = []
        self._interrupts = Interrupts()
        self._keep_open = tuple(keep_open)

    def __enter__(self) -> Supervisor:
        self._guard = subprocess.Popen(
            [sys.executable, "-I", str(GUARD), str(self._guard_grace_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=self._keep_open,
            start_new_session=True,
        )
        self._interrupts.listen()
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self._stop_all()
        finally:
            self._dismiss_guard()
            self._interrupts.unlisten()

    def start(self, service: Service) -> None:
        """Start a service and return when it is ready.

        Raise ServiceError if it dies first or takes too long, StopRequested if a stop was
        requested.
        """
        if service.command.log is not None:
            put_aside(service.command.log)
        running = Running(service=service, child=self._spawn(service), born=time.monotonic())
        self._started.append(running)
        began = time.monotonic()
        while not (service.ready() and running.child.status() is None):
            self._interrupts.check()
            elapsed = time.monotonic() - began
            if running.child.status() is not None:
                self._retry_start(running, elapsed)
            elif elapsed > service.ready_timeout_s:
                raise ServiceError(format_exit(running, f"was not ready in {elapsed:.0f} s"))
            self._interrupts.pause(POLL_S)

    def on_stop(self, command: Command) -> None:
        """Run a command at the stop, before the services started so far are stopped."""
        self._started.append(command)
        closing = [list(command.argv), dict(command.env), str(command.cwd)]
        self._write_to_guard("= " + json.dumps(closing))

    def run(self, command: Command) -> int:
        """Run a command to its end while watching the services, and return its exit status.

        If a stop is requested, the command gets the same signal, and then StopRequested is raised.
        """
        if command.log is not None:
            put_aside(command.log)
        child = self._spawn_command(command)
        try:
            while child.status() is None:
                self._tend()
                signum = self._interrupts.first()
                if signum is not None:
                    self._ask_to_end(child, ((signum, COMMAND_GRACE_S),))
                    self._interrupts.check()
                self._interrupts.pause(WATCH_S)
        finally:
            self._bury(child)
        # The command may have ended by itself just when a stop was requested.
        self._interrupts.check()
        return child.process.returncode

    def watch(self) -> None:
        """Keep the services running until a stop is requested; then raise StopRequested."""
        while True:
            self._tend()
            self._interrupts.check()
            self._interrupts.pause(WATCH_S)

    # Watching

    def _tend(self) -> None:
        for running in self._started:
            if not isinstance(running, Running):
                continue
            if running.restart_at is not None:
                self._restart_when_due(running)
            elif running.child.status() is not None:
                self._mourn(running)

    def _mourn(self, running: Running) -> None:
        self._bury(running.child)
        lived_s = time.monotonic() - running.born
        running.failures = 1 if lived_s > LIVED_LONG_S else running.failures + 1
        text = format_exit(running, "died")
        if running.failures > running.service.restarts:
            raise ServiceError(text)
        delay_s = 2.0 ** (running.failures - 1)
        running.restart_at = time.monotonic() + delay_s
        print_message(f"{text}\nStarting {running.name} again in {delay_s:.0f} s.")

    def _restart_when_due(self, running: Running) -> None:
        if running.restart_at is None or time.monotonic() < running.restart_at:
            return
        running.restart_at = None
        running.child = self._spawn(running.service)
        running.born = time.monotonic()

    def _retry_start(self, running: Running, elapsed: float) -> None:
        self._bury(running.child)
        if elapsed > running.service.start_retry_s:
            raise ServiceError(format_exit(running, "did not start"))
        self._interrupts.pause(10 * POLL_S)
        running.child = self._spawn(running.service)

    # Stopping

    def _stop_all(self) -> None:
        if self._interrupts.first() is not None and self._started:
            print_message("stopping; press Ctrl-C again to kill all processes at once")
        while self._started:
            entry = self._started.pop()
            if isinstance(entry, Command):
                self._run_at_stop(entry)
            else:
                self._ask_to_end(entry.child, entry.service.stop)
                self._bury(entry.child)

    def _run_at_stop(self, command: Command) -> None:
        """A failure is only reported: the stop must continue."""
        if self._interrupts.in_a_hurry():
            # The guard still has it, and runs it when we are gone.
            return
        self._write_to_guard("=")
        try:
            child = self._spawn_command(command)
        except ServiceError as error:
            print_message(str(error))
            return
        self._wait_for(child, STOP_COMMAND_TIMEOUT_S)
        self._bury(child)
        if child.status() != 0:
            status = describe_status(child.process.returncode)
            print_message(
                f"{command.name} did not succeed ({status}). {log_tail(command.log, lines=3)}"
            )

    def _ask_to_end(self, child: Child, ladder: Iterable[tuple[int, float]]) -> None:
        for signum, grace_s in ladder:
            if self._interrupts.in_a_hurry():
                return
            child.send(signum)
            if self._wait_for(child, grace_s):
                return

    def _wait_for(self, child: Child, limit_s: float) -> bool:
        deadline = time.monotonic() + limit_s
        while child.status() is None and time.monotonic() < deadline:
            if self._interrupts.in_a_hurry():
                return False
            self._interrupts.pause(POLL_S)
        return child.status() is not None

    def _bury(self, child: Child) -> None:
        child.kill_group()
        self._write_to_guard(f"- {child.pid}")

    # Children and the guard

    def _spawn(self, service: Service) -> Child:
        first_rung = service.stop[0][0]
        return self._spawn_command(service.command, death_signal=first_rung)

    def _spawn_command(self, command: Command, death_signal: int = signal.SIGTERM) -> Child:
        try:
            child = spawn(command, death_signal)
        except OSError as error:
            raise ServiceError(f"{command.name}: cannot run {command.argv[0]}: {error}") from error
        self._write_to_guard(f"+ {child.pid} {int(death_signal)}")
        return child

    def _write_to_guard(self, line: str) -> None:
        assert self._guard.stdin is not None
        # A killed guard is no reason to fail.
        with contextlib.suppress(BrokenPipeError):
            self._guard.stdin.write(line.encode() + b"\n")
            self._guard.stdin.flush()

    def _dismiss_guard(self) -> None:
        assert self._guard.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._guard.stdin.close()
        if not self._interrupts.in_a_hurry():
            self._guard.wait()


def format_exit(running: Running, what: str) -> str:
    status = running.child.status()
    how = "" if status is None else f" ({describe_status(status)})"
    return f"{running.name} {what}{how}. {log_tail(running.service.command.log)}"


def describe_status(status: int) -> str:
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"exit status {status}"


def print_message(text: str) -> None:
    """Print to the terminal, which may be gone."""
    with contextlib.suppress(OSError):
        print(f"pitwall: {text}", file=sys.stderr, flush=True)
