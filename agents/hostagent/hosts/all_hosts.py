"""All hosts of the job, as the lead sees them: it starts and monitors processes on each host."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from ..errors import PeerLost
from ..monitoring.host_monitor import HostMonitor
from ..network.emulation import EmulatedNetwork, emulate
from ..paths import StepDir
from ..platform.processes import Child
from ..step.dropped_trials import DroppedTrials
from ..step.keepalive import Keepalive
from ..step.plan import Plan, Trial
from .follower_connection import FollowerConnection, connect
from .local_host import LocalHost, TrialProcess
from .remote_host import RemoteHost, RemoteHostMonitor, RemoteProcess
from .secure_channel import build_scope

#: The environment is measured in this last part of a cooldown. The results are read before it.
OBSERVED_REST_S = 0.3

AnyProcess = Union[TrialProcess, RemoteProcess]
AnyMonitor = Union[HostMonitor, RemoteHostMonitor]


class AllHosts:
    """All hosts of a plan, and the heartbeat that each waiting loop calls."""

    def __init__(
        self, local_host: LocalHost, step: StepDir, plan: Plan, keepalive: Keepalive
    ) -> None:
        self.step = step
        self.plan = plan
        self.dropped = DroppedTrials(step)
        self._keepalive = keepalive
        self._followers: dict[str, FollowerConnection] = {}
        self.sandbox = local_host.sandbox
        self._local_host = local_host
        self._network: Optional[EmulatedNetwork] = None

    @contextlib.contextmanager
    def connected(self) -> Iterator[None]:
        """Connect to all followers; after a successful block, end the round on them."""
        try:
            for label in self.plan.followers:
                self._connect(label)
            yield
            self._end_round()
        finally:
            for follower in self._followers.values():
                follower.close()

    def _connect(self, label: str) -> None:
        plan = self.plan
        assert plan.secret is not None
        channel_scope = build_scope(plan.job, plan.step, label)
        self._followers[label] = connect(label, plan.hosts[label], plan.secret, channel_scope)

    def _end_round(self) -> None:
        """All trials are in the journal: the loss of a follower changes nothing now."""
        for follower in self._followers.values():
            with contextlib.suppress(PeerLost):
                follower.call("end_round", self._keepalive.heartbeat)

    @contextlib.contextmanager
    def emulated(self, trial: Trial) -> Iterator[Optional[EmulatedNetwork]]:
        """Let the block run in the network of the trial, if it has one."""
        if trial.network is None:
            yield None
            return
        with emulate(trial.network) as network:
            self._network = network
            try:
                yield network
            finally:
                self._network = None

    @contextlib.contextmanager
    def on_load_side(self) -> Iterator[None]:
        """Let the block create sockets, processes and threads where the load tool is."""
        if self._network is None:
            yield
            return
        with self._network.on_load_side():
            yield

    def heartbeat(self) -> None:
        """Call this often: it raises Aborted if nobody polls any more or a follower is lost.

        It raises TrialFailed if the current trial was dropped.
        """
        self._keepalive.heartbeat()
        self.dropped.check()
        for follower in self._followers.values():
            follower.heartbeat()

    def sleep_until(self, end: float) -> None:
        """Sleep until that time of the monotonic clock, and check the liveness of all hosts."""
        while (left := end - time.monotonic()) > 0:
            self.heartbeat()
            time.sleep(min(0.05, left))

    def start(self, trial: Trial, name: str, placeholders: Mapping[str, str]) -> AnyProcess:
        program = trial.program(name)
        assert program is not None
        return self._host(program.on).start(trial.id, name, placeholders)

    def check_build(self, trial: Trial, server: AnyProcess) -> dict[str, Any]:
        """Return BUILT of protocol.py; TrialFailed if the server is not of the commit's build."""
        if isinstance(server, TrialProcess):
            return self._local_host.check_build(trial.id, server)
        return server.check_build()

    def prepare(self, trial: Trial) -> dict[str, Any]:
        """Write the files of the trial and measure the environment of each host, by label."""
        return {label: self._host(label).prepare(trial.id) for label in self.plan.hosts}

    def collect_placements(self, trial: Trial) -> dict[str, Any]:
        """Return PLACEMENT of protocol.py of each host, by label."""
        return {label: self._host(label).describe_placement(trial.id) for label in self.plan.hosts}

    def build_placeholders(self, trial: Trial) -> dict[str, str]:
        """Return the placeholders of a trial for the load tool of this host."""
        return self._local_host.build_placeholders(trial)

    def find_prepared(self, trial: Trial, number: int) -> Optional[float]:
        """Return how long a prepare step took whose data exist; None if it has to run."""
        return self._host(trial.server.on).find_prepared(trial.id, number)

    def end_prepare_step(self, trial: Trial, number: int, seconds: float) -> None:
        """Record that the prepare step succeeded."""
        self._host(trial.server.on).end_prepare_step(trial.id, number, seconds)

    def renew_trial_data(self) -> None:
        """Empty {trial_data} on all hosts."""
        for label in self.plan.hosts:
            self._host(label).renew_trial_data()

    def observe(self) -> None:
        """Begin to measure the environment of each host: no process of a trial runs from now on."""
        for label in self.plan.hosts:
            self._host(label).observe()

    def cool_down(self, seconds: float) -> None:
        """Let the hosts rest after a trial, and measure their environment at the end of the rest.

        A shorter rest is part of what is measured since the end of the processes.
        """
        end = time.monotonic() + seconds
        if seconds >= OBSERVED_REST_S:
            self.sleep_until(end - OBSERVED_REST_S)
            self.observe()
        self.sleep_until(end)

    def measure_environment(self) -> dict[str, Any]:
        """Measure the environment of each host, by label."""
        return {label: self._host(label).measure_environment() for label in self.plan.hosts}

    def monitor(self, trial: Trial, processes: Sequence[AnyProcess]) -> AllHostsMonitor:
        """Begin to monitor all hosts; `processes` are all running ones of the trial."""
        for follower in self._followers.values():
            follower.reset_gap()
        hosts: dict[str, AnyMonitor] = {
            label: RemoteHost(self.step, follower, self.heartbeat).monitor(trial.id)
            for label, follower in self._followers.items()
        }
        local_host = [process for process in processes if isinstance(process, TrialProcess)]
        hosts[self.plan.me] = self._local_host.monitor(trial.id, local_host)
        return AllHostsMonitor(hosts, trial, self.plan.me)

    def _host(self, label: str) -> Union[LocalHost, RemoteHost]:
        if label == self.plan.me:
            return self._local_host
        return RemoteHost(self.step, self._followers[label], self.heartbeat)

    def gap_s(self) -> Optional[float]:
        """Return the longest wait for an answer of a follower so far; None without a follower."""
        return max((follower.longest_gap() for follower in self._followers.values()), default=None)

    def clear(self) -> None:
        """Remove all processes of the trial from the followers after its end."""
        for follower in self._followers.values():
            follower.call("clear", self.heartbeat)


class AllHostsMonitor:
    """The monitors of all hosts of a trial, by label."""

    def __init__(self, hosts: Mapping[str, AnyMonitor], trial: Trial, lead: str) -> None:
        self._hosts = hosts
        self._trial = trial
        self._lead = lead

    def __call__(self, tool: Optional[Child], seconds: float) -> None:
        for monitor in self._hosts.values():
            monitor(tool, seconds)

    def end(self, tool_cpu_s: Optional[float]) -> dict[str, Any]:
        """Return "usage", "samples" and "interference" of LOADED, and "load_before".

        "load_before" is the higher one of the server's host and of the lead.
        """
        results = {label: monitor.end(tool_cpu_s) for label, monitor in self._hosts.items()}
        server = results[self._trial.server.on]
        return {
            "usage": _add_services_usage(
                server["usage"], results, {s.on for s in self._trial.services}
            ),
            "samples": server["samples"],
            "interference": {label: process["interference"] for label, process in results.items()},
            "load_before": _find_highest(
                [server["load_before"], results[self._lead]["load_before"]]
            ),
        }


def _add_services_usage(
    usage: dict[str, Any], results: Mapping[str, dict[str, Any]], hosts: Collection[str]
) -> dict[str, Any]:
    """Add what the services used on all hosts."""
    spent = [results[label]["services_cpu_s"] for label in hosts]
    if not spent:
        return usage
    if None in spent:
        why = "unknown on one of several hosts with services"
        reasons = {"services_cpu_s": why, **usage["reasons"]}
        return {**usage, "services_cpu_s": None, "reasons": reasons}
    reasons = {key: why for key, why in usage["reasons"].items() if key != "services_cpu_s"}
    return {**usage, "services_cpu_s": sum(spent), "reasons": reasons}


def _find_highest(loads: Iterable[Optional[float]]) -> Optional[float]:
    return max((load for load in loads if load is not None), default=None)
