"""A follower as a host for processes, with the interface of the lead's own host (local_host.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Optional

from ..files import write_bytes
from ..monitoring.sampler import PERIOD_S, ToolMonitor
from ..paths import StepDir
from ..platform.processes import Child
from .follower_connection import FollowerConnection
from .local_host import log_name

Heartbeat = Callable[[], None]


class RemoteProcess:
    """A process on a follower, with the interface of TrialProcess."""

    def __init__(
        self,
        follower: FollowerConnection,
        heartbeat: Heartbeat,
        name: str,
        log: Path,
        started: Mapping[str, Any],
    ):
        self.name = name
        self.port_checked: Optional[bool] = None
        self.first_answer_s: Optional[float] = None
        self.address = follower.address
        self.port: int = started["port"]
        self.argv: list[str] = started["argv"]
        self.applied: dict[str, Any] = started["limits"]
        self._follower = follower
        self._heartbeat = heartbeat
        self._log = log

    @property
    def exit_code(self) -> Optional[int]:
        code: Optional[int] = self._poll()["exit_code"]
        return code

    @property
    def has_port(self) -> Optional[bool]:
        value: Optional[bool] = self._follower.call("listens", self._heartbeat, process=self.name)[
            "has_port"
        ]
        return value

    def describe_listening(self) -> str:
        answer = self._follower.call("describe_listening", self._heartbeat, process=self.name)
        return str(answer["text"])

    def check_build(self) -> dict[str, Any]:
        return self._follower.call("check_build", self._heartbeat, process=self.name)

    def output(self) -> str:
        return str(self._poll()["output"])

    def _poll(self) -> dict[str, Any]:
        return self._follower.call("poll", self._heartbeat, process=self.name)

    def stop(self) -> None:
        """Stop it there, and write the tail of its log here."""
        stopped = self._follower.call("stop", self._heartbeat, process=self.name)
        self.applied = stopped["limits"]
        write_bytes(self._log, stopped["log"].encode())


class RemoteHostMonitor:
    """The monitor of a follower, and of the load tool on this host."""

    def __init__(self, follower: FollowerConnection, heartbeat: Heartbeat, trial_id: str) -> None:
        self._follower = follower
        self._heartbeat = heartbeat
        self._tool = ToolMonitor()
        follower.call("begin_monitor", heartbeat, trial=trial_id)

    def __call__(self, tool: Optional[Child], seconds: float) -> None:
        if tool is not None and seconds >= len(self._tool.readings) * PERIOD_S:
            self._tool(tool, seconds)

    def end(self, tool_cpu_s: Optional[float]) -> dict[str, Any]:
        """Like HostMonitor.end, but `tool_cpu_s` of a sample is the nearest value of this host."""
        result = self._follower.call("end_monitor", self._heartbeat)
        for sample in result["samples"]:
            sample["tool_cpu_s"] = self._tool.cpu_s_at(sample["t"])
        own = {"tool_cpu_s": tool_cpu_s, "tool_peak_rss_bytes": self._tool.peak_rss_bytes}
        if result["usage"] is not None:
            _fill_unknown(result["usage"], own)
        return result


def _fill_unknown(usage: dict[str, Any], known: Mapping[str, Any]) -> None:
    for key, value in known.items():
        if value is not None:
            usage[key] = value
            usage["reasons"].pop(key, None)


class RemoteHost:
    """A follower as a host for processes."""

    def __init__(self, step: StepDir, follower: FollowerConnection, heartbeat: Heartbeat) -> None:
        self._step = step
        self._follower = follower
        self._heartbeat = heartbeat

    def start(self, trial_id: str, name: str, placeholders: Mapping[str, str]) -> RemoteProcess:
        started = self._follower.call(
            "start", self._heartbeat, trial=trial_id, process=name, placeholders=dict(placeholders)
        )
        log = self._step.trial(trial_id) / log_name(name)
        return RemoteProcess(self._follower, self._heartbeat, name, log, started)

    def prepare(self, trial_id: str) -> dict[str, Any]:
        return self._follower.call("prepare", self._heartbeat, trial=trial_id)

    def describe_placement(self, trial_id: str) -> dict[str, Any]:
        return self._follower.call("describe_placement", self._heartbeat, trial=trial_id)

    def find_prepared(self, trial_id: str, number: int) -> Optional[float]:
        found = self._follower.call("find_prepared", self._heartbeat, trial=trial_id, step=number)
        seconds: Optional[float] = found["seconds"]
        return seconds

    def end_prepare_step(self, trial_id: str, number: int, seconds: float) -> None:
        self._follower.call(
            "end_prepare_step", self._heartbeat, trial=trial_id, step=number, seconds=seconds
        )

    def renew_trial_data(self) -> None:
        self._follower.call("renew_trial_data", self._heartbeat)

    def observe(self) -> None:
        self._follower.call("observe", self._heartbeat)

    def measure_environment(self) -> dict[str, Any]:
        return self._follower.call("measure_environment", self._heartbeat)

    def monitor(self, trial_id: str) -> RemoteHostMonitor:
        return RemoteHostMonitor(self._follower, self._heartbeat, trial_id)
