"""The lead's view of all hosts of the job: where each part of a trial runs, whoever runs it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from ..errors import PeerLost
from ..monitoring.host_monitor import Sampling
from ..paths import StepDir
from ..platform.processes import Child
from ..step.dropped_trials import Dropped
from ..step.keepalive import Contact
from ..step.plan import Plan, Trial
from .follower_connection import Peer, connect
from .local_host import Here, Part
from .remote_host import RemotePart, RemoteSampling, There
from .secure_channel import scope

AnyPart = Union[Part, RemotePart]
AnySampling = Union[Sampling, RemoteSampling]


class Stage:
    """All places of a plan, and the beat that is kept while something is waited for."""

    def __init__(self, here: Here, step: StepDir, plan: Plan, contact: Contact) -> None:
        self.step = step
        self.plan = plan
        self.dropped = Dropped(step)
        self._contact = contact
        self._peers: dict[str, Peer] = {}
        self.grounds = here.grounds
        self._here = here

    @contextlib.contextmanager
    def met(self) -> Iterator[None]:
        """Lead all followers in the block; after a good end they learn that the round is done."""
        try:
            for label in self.plan.followers:
                self._meet(label)
            yield
            self._part()
        finally:
            for peer in self._peers.values():
                peer.close()

    def _meet(self, label: str) -> None:
        plan = self.plan
        assert plan.secret is not None
        place = scope(plan.job, plan.step, label)
        self._peers[label] = connect(label, plan.hosts[label], plan.secret, place)

    def _part(self) -> None:
        """All trials are told of by now: a peer that is lost here changes nothing."""
        for peer in self._peers.values():
            with contextlib.suppress(PeerLost):
                peer.call("bye", self._contact.beat)

    def beat(self) -> None:
        """To be called often; raises Aborted where nobody asks any more or a peer is lost.

        And TrialFailed where the trial that is on was dropped.
        """
        self._contact.beat()
        self.dropped.check()
        for peer in self._peers.values():
            peer.pulse()

    def sleep_until(self, end: float) -> None:
        """Sleep until that time of the monotonic clock, and check the liveness of all meanwhile."""
        while (left := end - time.monotonic()) > 0:
            self.beat()
            time.sleep(min(0.05, left))

    def start(self, trial: Trial, name: str, words: Mapping[str, str]) -> AnyPart:
        program = trial.program(name)
        assert program is not None
        return self._place(program.on).start(trial.id, name, words)

    def prepare(self, trial: Trial) -> dict[str, Any]:
        """Each host before anything of the trial starts there, its files written."""
        return {label: self._place(label).prepare(trial.id) for label in self.plan.hosts}

    def sampling(self, trial: Trial, parts: Sequence[AnyPart]) -> Everywhere:
        """Begin to look at all hosts; `parts` are all of the trial's that run."""
        for peer in self._peers.values():
            peer.forget_gap()
        hosts: dict[str, AnySampling] = {
            label: There(self.step, peer, self.beat).sampling(trial.id)
            for label, peer in self._peers.items()
        }
        here = [part for part in parts if isinstance(part, Part)]
        hosts[self.plan.me] = self._here.sampling(trial.id, here)
        return Everywhere(hosts, trial, self.plan.me)

    def _place(self, label: str) -> Union[Here, There]:
        if label == self.plan.me:
            return self._here
        return There(self.step, self._peers[label], self.beat)

    def gap_s(self) -> Optional[float]:
        """The longest wait for a peer's answer since sampling began; None without peers."""
        return max((peer.longest_gap() for peer in self._peers.values()), default=None)

    def clear(self) -> None:
        """A trial is over, well or not: nothing of it stays on any follower."""
        for peer in self._peers.values():
            peer.call("clear", self.beat)


class Everywhere:
    """The sampling of each host of a trial, by its label."""

    def __init__(self, hosts: Mapping[str, AnySampling], trial: Trial, lead: str) -> None:
        self._hosts = hosts
        self._trial = trial
        self._lead = lead

    def __call__(self, tool: Optional[Child], seconds: float) -> None:
        for sampling in self._hosts.values():
            sampling(tool, seconds)

    def end(self, tool_cpu_s: Optional[float]) -> dict[str, Any]:
        """ "usage", "samples", "ambient" of LOADED, and "load_before" of the two that matter."""
        found = {label: sampling.end(tool_cpu_s) for label, sampling in self._hosts.items()}
        server = found[self._trial.server.on]
        return {
            "usage": _with_services(server["usage"], found, {s.on for s in self._trial.services}),
            "samples": server["samples"],
            "ambient": {label: part["ambient"] for label, part in found.items()},
            "load_before": _highest([server["load_before"], found[self._lead]["load_before"]]),
        }


def _with_services(
    usage: dict[str, Any], found: Mapping[str, dict[str, Any]], hosts: Collection[str]
) -> dict[str, Any]:
    """What the services used on all the hosts where there are any."""
    spent = [found[label]["services_cpu_s"] for label in hosts]
    if not spent:
        return usage
    if None in spent:
        why = "one of several hosts with services could not tell"
        reasons = {"services_cpu_s": why, **usage["reasons"]}
        return {**usage, "services_cpu_s": None, "reasons": reasons}
    reasons = {key: why for key, why in usage["reasons"].items() if key != "services_cpu_s"}
    return {**usage, "services_cpu_s": sum(spent), "reasons": reasons}


def _highest(loads: Iterable[Optional[float]]) -> Optional[float]:
    return max((load for load in loads if load is not None), default=None)
