"""A follower as a place where parts run: the same to the lead as its own host (local_host.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Optional

from ..files import write_bytes
from ..monitoring.sampler import PERIOD_S, ToolWatch
from ..paths import StepDir
from ..platform.processes import Child
from .follower_connection import Peer
from .local_host import log_name

Beat = Callable[[], None]


class RemotePart:
    """A part on a follower; the same to the lead as one of its own."""

    def __init__(self, peer: Peer, beat: Beat, name: str, log: Path, started: Mapping[str, Any]):
        self.name = name
        self.port_checked: Optional[bool] = None
        self.address = peer.address
        self.port: int = started["port"]
        self.argv: list[str] = started["argv"]
        self.applied: dict[str, Any] = started["limits"]
        self._peer = peer
        self._beat = beat
        self._log = log

    @property
    def exit_code(self) -> Optional[int]:
        code: Optional[int] = self._look()["exit_code"]
        return code

    @property
    def has_port(self) -> Optional[bool]:
        found: Optional[bool] = self._peer.call("listens", self._beat, part=self.name)["has_port"]
        return found

    def output(self) -> str:
        return str(self._look()["output"])

    def _look(self) -> dict[str, Any]:
        return self._peer.call("look", self._beat, part=self.name)

    def stop(self) -> None:
        """End it there; the end of its log comes here."""
        stopped = self._peer.call("stop", self._beat, part=self.name)
        self.applied = stopped["limits"]
        write_bytes(self._log, stopped["log"].encode())


class RemoteSampling:
    """That host while a load runs, and the load tool here."""

    def __init__(self, peer: Peer, beat: Beat, trial_id: str) -> None:
        self._peer = peer
        self._beat = beat
        self._tool = ToolWatch()
        peer.call("begin", beat, trial=trial_id)

    def __call__(self, tool: Optional[Child], seconds: float) -> None:
        if tool is not None and seconds >= len(self._tool.taken) * PERIOD_S:
            self._tool(tool, seconds)

    def end(self, tool_cpu_s: Optional[float]) -> dict[str, Any]:
        """As Sampling.end; a sample's `tool_cpu_s` is the one taken here nearest to its time."""
        found = self._peer.call("end", self._beat)
        for sample in found["samples"]:
            sample["tool_cpu_s"] = self._tool.cpu_s_at(sample["t"])
        own = {"tool_cpu_s": tool_cpu_s, "tool_peak_rss_bytes": self._tool.peak_rss_bytes}
        if found["usage"] is not None:
            _fill(found["usage"], own)
        return found


def _fill(usage: dict[str, Any], known: Mapping[str, Any]) -> None:
    for key, value in known.items():
        if value is not None:
            usage[key] = value
            usage["reasons"].pop(key, None)


class There:
    """A follower as a place where parts run."""

    def __init__(self, step: StepDir, peer: Peer, beat: Beat) -> None:
        self._step = step
        self._peer = peer
        self._beat = beat

    def start(self, trial_id: str, name: str, words: Mapping[str, str]) -> RemotePart:
        started = self._peer.call("start", self._beat, trial=trial_id, part=name, words=dict(words))
        log = self._step.trial(trial_id) / log_name(name)
        return RemotePart(self._peer, self._beat, name, log, started)

    def prepare(self, trial_id: str) -> dict[str, Any]:
        return self._peer.call("before", self._beat, trial=trial_id)

    def sampling(self, trial_id: str) -> RemoteSampling:
        return RemoteSampling(self._peer, self._beat, trial_id)
