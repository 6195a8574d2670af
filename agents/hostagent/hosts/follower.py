"""The supervisor of a host that does not lead: it executes the calls of the lead.

Each call gets one answer, `{"answer": …}` or `{"error": {code, message, output}}`:

    prepare {trial}                          ENVIRONMENT; the folder of the trial is new
    describe_placement {trial}               PLACEMENT
    observe {}                               {}: begin to measure the environment
    measure_environment {}                   ENVIRONMENT
    start {trial, process, placeholders}     {port, argv, limits}
    find_prepared {trial, step}              {seconds}: of a step whose data exist, or null
    end_prepare_step {trial, step, seconds}  {}: the prepare step succeeded
    renew_trial_data {}                      {}: {trial_data} is empty
    poll {process}                           {exit_code, output}
    listens {process}                        {has_port}: whether it owns its port, or null
    describe_listening {process}             {text}: what it does instead of listening on its port
    check_build {process}                    BUILT of the server, of protocol.py
    stop {process}                           {log, limits}: stop its tree; the tail of its log
    begin_monitor {trial} · end_monitor {}   {} · {usage, samples, load_before, interference}
    clear {}                                 {}: the trial is over; kill all its processes
    ping {}                                  {}
    end_round {}                             {}: the round is done

The lead names trials and processes; the plan of this host defines them.
"""

from __future__ import annotations

import time
import traceback
from typing import Any, Optional

from ..errors import Aborted, AgentError, PeerLost, TrialFailed
from ..files import read_tail_text
from ..monitoring.host_monitor import HostMonitor
from ..paths import StepDir
from ..platform.processes import kill_descendants
from ..step.journal import Journal
from ..step.keepalive import Keepalive
from ..step.plan import Plan
from .listener import FollowerListener
from .local_host import LOG_BYTES, LocalHost, TrialProcess
from .secure_channel import Channel, build_scope

#: Timeout without a message during a trial; the lead sends one each second.
LEAD_TIMEOUT_S = 30.0
POLL_S = 1.0


def follow(
    local_host: LocalHost, step: StepDir, plan: Plan, journal: Journal, keepalive: Keepalive
) -> None:
    """Serve one lead until it ends the round; PeerLost without a lead or without its messages."""
    assert plan.secret is not None
    listener = FollowerListener(
        plan.hosts[plan.me].address, plan.secret, build_scope(plan.job, plan.step, plan.me)
    )
    journal.append("listening", port=listener.port)
    deadline = time.monotonic() + plan.silence_s

    def wait() -> None:
        keepalive.heartbeat()
        if time.monotonic() > deadline:
            raise PeerLost(f"no lead came within {plan.silence_s:g} s")

    channel = listener.accept_lead(wait)
    try:
        Follower(local_host, channel, keepalive).serve()
    finally:
        channel.close()


class Follower:
    """Answers the calls of one lead, and samples the server between two calls."""

    def __init__(self, local_host: LocalHost, channel: Channel, keepalive: Keepalive) -> None:
        self._local_host = local_host
        self._channel = channel
        self._keepalive = keepalive
        self._processes: dict[str, TrialProcess] = {}
        self._monitor: Optional[HostMonitor] = None
        self._began = 0.0
        self._in_trial = False
        self._trial = ""

    def serve(self) -> None:
        last_message = time.monotonic()
        while True:
            message = self._channel.receive(self._receive_timeout_s())
            self._keepalive.heartbeat()
            if message is None:
                if self._in_trial and time.monotonic() - last_message > LEAD_TIMEOUT_S:
                    raise PeerLost(f"the lead has sent nothing for {LEAD_TIMEOUT_S:g} s")
                self._sample()
                continue
            self._keepalive.touch()
            self._channel.send(self._answer(message))
            if message.get("call") == "end_round":
                return
            self._sample()
            last_message = time.monotonic()

    def _receive_timeout_s(self) -> float:
        """Return the time until the next sample, or POLL_S without a monitor."""
        if self._monitor is None:
            return POLL_S
        return 1.0 - (time.monotonic() - self._began) % 1.0

    def _sample(self) -> None:
        if self._monitor is not None:
            self._monitor(None, time.monotonic() - self._began)

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        call = getattr(self, f"_call_{message.get('call')}", None)
        arguments = {key: value for key, value in message.items() if key != "call"}
        try:
            if call is None:
                raise AgentError(f"no such call: {message.get('call')!r}")
            return {"answer": call(**arguments)}
        except Aborted:  # it ends the step on this host
            raise
        except TrialFailed as failed:
            return _build_error(failed.code, failed.message, failed.output)
        except (AgentError, OSError, TypeError, KeyError) as error:
            traceback.print_exc()
            return _build_error("internal", f"{type(error).__name__}: {error}")

    def _call_prepare(self, trial: str) -> dict[str, Any]:
        return self._local_host.prepare(trial)

    def _call_describe_placement(self, trial: str) -> dict[str, Any]:
        return self._local_host.describe_placement(trial)

    def _call_find_prepared(self, trial: str, step: int) -> dict[str, Any]:
        return {"seconds": self._local_host.find_prepared(trial, step)}

    def _call_end_prepare_step(self, trial: str, step: int, seconds: float) -> dict[str, Any]:
        self._local_host.end_prepare_step(trial, step, seconds)
        return {}

    def _call_renew_trial_data(self) -> dict[str, Any]:
        self._local_host.renew_trial_data()
        return {}

    def _call_observe(self) -> dict[str, Any]:
        self._local_host.observe()
        return {}

    def _call_measure_environment(self) -> dict[str, Any]:
        return self._local_host.measure_environment()

    def _call_start(self, trial: str, process: str, placeholders: dict[str, str]) -> dict[str, Any]:
        self._in_trial = True
        if process in self._processes:
            raise AgentError(f"{process} is already running")
        self._trial = trial
        started = self._processes[process] = self._local_host.start(trial, process, placeholders)
        return {"port": started.port, "argv": started.argv, "limits": started.applied}

    def _call_poll(self, process: str) -> dict[str, Any]:
        trial_process = self._processes[process]
        return {"exit_code": trial_process.exit_code, "output": trial_process.output()}

    def _call_listens(self, process: str) -> dict[str, Any]:
        return {"has_port": self._processes[process].has_port}

    def _call_describe_listening(self, process: str) -> dict[str, Any]:
        return {"text": self._processes[process].describe_listening()}

    def _call_check_build(self, process: str) -> dict[str, Any]:
        return self._local_host.check_build(self._trial, self._processes[process])

    def _call_stop(self, process: str) -> dict[str, Any]:
        stopped = self._processes.pop(process)
        stopped.stop()
        return {"log": read_tail_text(stopped.log, LOG_BYTES), "limits": stopped.applied}

    def _call_begin_monitor(self, trial: str) -> dict[str, Any]:
        self._monitor = self._local_host.monitor(trial, list(self._processes.values()))
        self._began = time.monotonic()
        return {}

    def _call_end_monitor(self) -> dict[str, Any]:
        if self._monitor is None:
            raise AgentError("no monitor is running")
        monitor, self._monitor = self._monitor, None
        return monitor.end(None)

    def _call_clear(self) -> dict[str, Any]:
        for process in self._processes.values():
            process.child.kill()
        self._processes.clear()
        self._monitor = None
        self._in_trial = False
        kill_descendants()
        return {}

    def _call_ping(self) -> dict[str, Any]:
        return {}

    def _call_end_round(self) -> dict[str, Any]:
        return {}


def _build_error(code: str, message: str, output: str = "") -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "output": output}}
