"""The lead's view of all hosts of the job: where each part of a trial runs, whoever runs it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from ..errors import PeerLost
from ..paths import StepDir
from ..step.dropped_trials import Dropped
from ..step.keepalive import Contact
from ..step.plan import Plan, Trial
from .everywhere import AnySampling, Everywhere
from .follower_connection import Peer, connect
from .local_host import Here, Part
from .remote_host import RemotePart, There
from .secure_channel import scope

AnyPart = Union[Part, RemotePart]


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
