"""The load tools that a definition can name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

from orchestrator.loadtools.ghz import Ghz
from orchestrator.loadtools.h2load import H2load
from orchestrator.loadtools.k6 import K6
from orchestrator.loadtools.model import (
    Capabilities,
    Invocation,
    LoadSpec,
    Problem,
    TrialReading,
)
from orchestrator.loadtools.oha import Oha
from orchestrator.loadtools.script import Script
from orchestrator.loadtools.wrk import Wrk


class Adapter(Protocol):
    """A load tool: the commands for a load, and the reading of its output. Pure functions."""

    @property
    def name(self) -> str: ...

    @property
    def minimum_version(self) -> tuple[int, int, int]: ...

    @property
    def sheet(self) -> Capabilities: ...

    @property
    def reader(self) -> str:
        """Return the reader of its output on the host (agents/hostagent/readers/registry.py)."""

    def problems(self, spec: LoadSpec) -> list[Problem]: ...

    def invocations(self, spec: LoadSpec, tool_cpus: int) -> tuple[Invocation, ...]: ...

    def files(self, spec: LoadSpec) -> Mapping[str, str]:
        """Return texts that the tool reads, by their names in {trial_dir}."""

    def probe(self, spec: LoadSpec) -> tuple[str, ...] | None:
        """Return the arguments for one request, for protocols that only the tool supports."""

    def parse(
        self, spec: LoadSpec, report: bytes, rows: Mapping[str, Any], result: Mapping[str, Any]
    ) -> TrialReading: ...


TOOLS: Mapping[str, Adapter] = MappingProxyType(
    {"oha": Oha(), "wrk": Wrk(), "script": Script(), "h2load": H2load(), "ghz": Ghz(), "k6": K6()}
)
