"""Faults at random moments, which a seed repeats."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from devstack.processes import find_descendants
from perf.harness.ssh_hosts import Fleet, SshHost
from perf.soak.services import Services
from tests.support.journals import read_journals
from tests.support.proc import command_line, kill, read_name

#: The longest time of an outage in seconds.
DOWN_S = 4.0
#: The last events of a journal whose round has ended.
ENDED = ("round_done", "aborted")


class Faults:
    """Cause one fault after the other.

    `struck` counts them by kind, without those that had no target.
    """

    def __init__(self, services: Services, fleet: Fleet, *, seed: int, every_s: float) -> None:
        self._kinds: dict[str, Callable[[], bool]] = {
            "worker killed": self._kill_worker,
            "agent killed": lambda: self._somewhere(_kill_agent),
            "connections dropped": lambda: self._somewhere(self._drop_connections),
            "connections frozen": lambda: self._somewhere(self._freeze_connections),
            "Redis killed": self._kill_redis,
            "database sessions ended": self._end_sessions,
        }
        self.struck = dict.fromkeys(self._kinds, 0)
        self._tried = dict.fromkeys(self._kinds, 0)
        self._parts, self._fleet, self._every_s = services, fleet, every_s
        self._random = random.Random(seed)

    def break_things(self, seconds: float) -> None:
        """Cause faults for `seconds`, or up to twice as long until each kind has occurred.

        Do not run it in a separate thread: services that it restarts would die with their thread.
        """
        began = time.monotonic()
        while True:
            time.sleep(self._random.expovariate(1 / self._every_s))
            lasts_s = seconds if all(self.struck.values()) else 2 * seconds
            if time.monotonic() - began > lasts_s:
                return
            self._break_one()

    def _break_one(self) -> None:
        """Choose among the kinds that were tried least often, so that a soak covers all of them."""
        in_turn = self._random.sample(list(self._kinds), len(self._kinds))
        name = min(in_turn, key=self._tried.__getitem__)
        self._tried[name] += 1
        self.struck[name] += self._kinds[name]()

    def _somewhere(self, strike: Callable[[SshHost], bool]) -> bool:
        """Strike one of the hosts with a possible target."""
        hosts = self._fleet.hosts
        return any(strike(host) for host in self._random.sample(hosts, len(hosts)))

    def _pause(self) -> None:
        time.sleep(self._random.uniform(0, DOWN_S))

    def _kill_worker(self) -> bool:
        self._parts.victim.kill()
        self._pause()
        self._parts.victim.start()
        return True

    def _drop_connections(self, host: SshHost) -> bool:
        """Kill sshd's processes of open connections; commands in them continue."""
        pids = find_sessions(self._fleet, host)
        for pid in pids:
            kill(pid)
        return bool(pids)

    def _freeze_connections(self, host: SshHost) -> bool:
        """Stop connections for a while, without closing them."""
        pids = find_sessions(self._fleet, host)
        for signum in (signal.SIGSTOP, signal.SIGCONT):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signum)
            if signum == signal.SIGSTOP:
                self._pause()
        return bool(pids)

    def _kill_redis(self) -> bool:
        self._parts.redis.kill()
        self._pause()
        self._parts.redis.start()
        return True

    def _end_sessions(self) -> bool:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            ended = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
                "current_database() AND usename = current_user AND pid <> pg_backend_pid()"
            )
            return bool(ended.fetchall())


def _kill_agent(host: SshHost) -> bool:
    """Kill the supervisor of a running round, if there is one."""
    live = [pid for pid in find_supervisors(host) if belongs_to_host(pid, host)]
    for pid in live:
        kill(pid)
    return bool(live)


def find_supervisors(host: SshHost) -> list[int]:
    """Return the supervisors of rounds that have not ended according to the host's journals."""
    return [
        int(event["pid"])
        for step in read_journals(host.work_dir)
        if step.events[-1]["event"] not in ENDED
        for event in step.events
        if event["event"] == "supervisor_started"
    ]


def find_sessions(fleet: Fleet, host: SshHost) -> list[int]:
    """Return the processes below the host's sshd, which is identified by its configuration file."""
    settings = str(fleet.folder / host.name / "sshd_config")
    servers = [pid for pid in find_descendants(os.getpid()) if settings in command_line(pid)]
    below = {pid for server in servers for pid in find_descendants(server)}
    return [pid for pid in below - {*servers} if read_name(pid).startswith("sshd")]


def belongs_to_host(pid: int, host: SshHost) -> bool:
    """Return whether a process works for this host, by its command line or its folder."""
    if str(host.work_dir) in command_line(pid):
        return True
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cwd").resolve().is_relative_to(host.work_dir)
    return False
