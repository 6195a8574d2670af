"""The supervisor of a host that does not lead: it starts and stops what the lead names.

Each call is answered at once, `{"answer": …}` or `{"error": {code, message, output}}`:

    before {trial}                AMBIENT_BEFORE: nothing of the trial runs, its folder is made anew
    start {trial, part, words}    {port, argv, limits}
    look {part}                   {exit_code, output}
    listens {part}                {has_port}: whether it has its port itself, or null
    stop {part}                   {log, limits}: ended with its whole tree; the end of its log
    begin {trial} · end {}        {} · {usage, samples, load_before, ambient}: the host in between
    clear {}                      {}: the trial is over, whatever is left of it is killed
    ping {}                       {}
    bye {}                        {}: the round is done

The lead names trials and parts; what they are is said by this host's own plan.
"""

from __future__ import annotations

import time
import traceback
from typing import Any, Optional

from ..errors import AgentError, PeerLost, TrialFailed
from ..files import tail_text
from ..monitoring.host_monitor import Sampling
from ..paths import StepDir
from ..platform.processes import kill_descendants
from ..step.journal import Journal
from ..step.keepalive import Contact
from ..step.plan import Plan
from .listener import Door
from .local_host import LOG_BYTES, Here, Part
from .secure_channel import Channel, scope

#: Silence of the lead while a trial is on; it says something each second.
DEAF_S = 30.0
POLL_S = 1.0


def follow(here: Here, step: StepDir, plan: Plan, journal: Journal, contact: Contact) -> None:
    """Serve one lead until it says that the round is done; PeerLost where it does not."""
    assert plan.secret is not None
    door = Door(plan.hosts[plan.me].address, plan.secret, scope(plan.job, plan.step, plan.me))
    journal.append("listening", port=door.port)
    deadline = time.monotonic() + plan.silence_s

    def wait() -> None:
        contact.beat()
        if time.monotonic() > deadline:
            raise PeerLost(f"no lead came within {plan.silence_s:g} s")

    channel = door.admit(wait)
    try:
        Follower(here, channel, contact).serve()
    finally:
        channel.close()


class Follower:
    """Answers one lead's calls, and samples the server between two of them."""

    def __init__(self, here: Here, channel: Channel, contact: Contact) -> None:
        self._here = here
        self._channel = channel
        self._contact = contact
        self._parts: dict[str, Part] = {}
        self._sampling: Optional[Sampling] = None
        self._began = 0.0
        self._in_trial = False

    def serve(self) -> None:
        heard = time.monotonic()
        while True:
            message = self._channel.receive(self._pause())
            self._contact.beat()
            if message is None:
                if self._in_trial and time.monotonic() - heard > DEAF_S:
                    raise PeerLost(f"the lead has said nothing for {DEAF_S:g} s")
                self._sample()
                continue
            self._contact.touch()
            self._channel.send(self._answer(message))
            if message.get("call") == "bye":
                return
            self._sample()
            heard = time.monotonic()

    def _pause(self) -> float:
        """Until the next sample is due, or for a moment."""
        if self._sampling is None:
            return POLL_S
        return 1.0 - (time.monotonic() - self._began) % 1.0

    def _sample(self) -> None:
        if self._sampling is not None:
            self._sampling(None, time.monotonic() - self._began)

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        call = getattr(self, f"_call_{message.get('call')}", None)
        words = {key: value for key, value in message.items() if key != "call"}
        try:
            if call is None:
                raise AgentError(f"no such call: {message.get('call')!r}")
            return {"answer": call(**words)}
        except TrialFailed as failed:
            return _error(failed.code, failed.message, failed.output)
        except (AgentError, OSError, TypeError, KeyError) as error:
            traceback.print_exc()
            return _error("internal", f"{type(error).__name__}: {error}")

    def _call_before(self, trial: str) -> dict[str, Any]:
        return self._here.prepare(trial)

    def _call_start(self, trial: str, part: str, words: dict[str, str]) -> dict[str, Any]:
        self._in_trial = True
        if part in self._parts:
            raise AgentError(f"{part} runs already")
        started = self._parts[part] = self._here.start(trial, part, words)
        return {"port": started.port, "argv": started.argv, "limits": started.applied}

    def _call_look(self, part: str) -> dict[str, Any]:
        found = self._parts[part]
        return {"exit_code": found.exit_code, "output": found.output()}

    def _call_listens(self, part: str) -> dict[str, Any]:
        return {"has_port": self._parts[part].has_port}

    def _call_stop(self, part: str) -> dict[str, Any]:
        stopped = self._parts.pop(part)
        stopped.stop()
        return {"log": tail_text(stopped.log, LOG_BYTES), "limits": stopped.applied}

    def _call_begin(self, trial: str) -> dict[str, Any]:
        self._sampling = self._here.sampling(trial, list(self._parts.values()))
        self._began = time.monotonic()
        return {}

    def _call_end(self) -> dict[str, Any]:
        if self._sampling is None:
            raise AgentError("nothing is being sampled")
        sampling, self._sampling = self._sampling, None
        return sampling.end(None)

    def _call_clear(self) -> dict[str, Any]:
        for part in self._parts.values():
            part.child.kill()
        self._parts.clear()
        self._sampling = None
        self._in_trial = False
        kill_descendants()
        return {}

    def _call_ping(self) -> dict[str, Any]:
        return {}

    def _call_bye(self) -> dict[str, Any]:
        return {}


def _error(code: str, message: str, output: str = "") -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "output": output}}
