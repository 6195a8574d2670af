"""The load tools that can be named in a definition."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

from orchestrator.loadtools.model import Invocation, LoadSpec, TrialReading
from orchestrator.loadtools.oha import Oha
from orchestrator.loadtools.problems import Problem


class Adapter(Protocol):
    """A load tool: what to start for a load, and what came of it. Pure."""

    @property
    def name(self) -> str: ...

    @property
    def minimum_version(self) -> tuple[int, int, int]: ...

    def problems(self, spec: LoadSpec) -> list[Problem]: ...

    def invocations(self, spec: LoadSpec, tool_cpus: int) -> tuple[Invocation, ...]: ...

    def parse(
        self, tool_json: bytes, rows: Mapping[str, Any], result: Mapping[str, Any]
    ) -> TrialReading: ...


TOOLS: Mapping[str, Adapter] = MappingProxyType({"oha": Oha()})
