"""What is broken, at random moments that a seed repeats."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from devstack.processes import descendants
from perf.harness.ssh_hosts import Fleet, SshHost
from perf.soak.services import Services
from tests.support.journals import read_journals
from tests.support.proc import command_line, kill, name_of

#: Seconds for which something is away, at most.
DOWN_S = 4.0
#: What a journal says last of a round that is over.
ENDED = ("round_done", "aborted")


class Faults:
    """Breaks one thing after the other; `struck` counts them by kind, less those that found nothing
    to break."""

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
        """For so long, or up to as long again until each kind has struck. Not in a thread of its
        own: what is started again dies with the thread that started it."""
        began = time.monotonic()
        while True:
            time.sleep(self._random.expovariate(1 / self._every_s))
            lasts_s = seconds if all(self.struck.values()) else 2 * seconds
            if time.monotonic() - began > lasts_s:
                return
            self._break_one()

    def _break_one(self) -> None:
        """Of the kinds that were tried least often: a soak is long enough for all of them."""
        in_turn = self._random.sample(list(self._kinds), len(self._kinds))
        name = min(in_turn, key=self._tried.__getitem__)
        self._tried[name] += 1
        self.struck[name] += self._kinds[name]()

    def _somewhere(self, strike: Callable[[SshHost], bool]) -> bool:
        """At one of the hosts where there is something to break."""
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
        """sshd's processes of open connections; the commands within live on."""
        found = sessions(self._fleet, host)
        for pid in found:
            kill(pid)
        return bool(found)

    def _freeze_connections(self, host: SshHost) -> bool:
        """Nothing comes through for a while, and nobody is told."""
        found = sessions(self._fleet, host)
        for signum in (signal.SIGSTOP, signal.SIGCONT):
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signum)
            if signum == signal.SIGSTOP:
                self._pause()
        return bool(found)

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
    """The supervisor of a round that is at work, if there is one."""
    live = [pid for pid in supervisors(host) if is_of(pid, host)]
    for pid in live:
        kill(pid)
    return bool(live)


def supervisors(host: SshHost) -> list[int]:
    """Of rounds that the host's journals do not say to be over."""
    return [
        int(told["pid"])
        for step in read_journals(host.work_dir)
        if step.events[-1]["event"] not in ENDED
        for told in step.events
        if told["event"] == "supervisor_started"
    ]


def sessions(fleet: Fleet, host: SshHost) -> list[int]:
    """Processes below the host's own sshd, which is known by its file of settings."""
    settings = str(fleet.folder / host.name / "sshd_config")
    servers = [pid for pid in descendants(os.getpid()) if settings in command_line(pid)]
    below = {pid for server in servers for pid in descendants(server)}
    return [pid for pid in below - {*servers} if name_of(pid).startswith("sshd")]


def is_of(pid: int, host: SshHost) -> bool:
    """Whether a process works for this host: by its command line, or the folder that it is in."""
    if str(host.work_dir) in command_line(pid):
        return True
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cwd").resolve().is_relative_to(host.work_dir)
    return False
