"""The data for the validity of a load."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.loadtools.model import Distribution, LoadFacts, LoadSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A requested load and its results.

    `rows` is the agent's rows.json; `result` its result.json, including the fields of the load.
    `errors` is None if the tool does not report all errors. `spoken`: every protocol that the tool
    or a check observed, the tool's first.
    """

    spec: LoadSpec
    load: LoadFacts
    ok: Distribution
    other: Distribution
    answered_of_load: int
    errors: Mapping[str, int] | None
    truncated: int
    delivered: float | None
    rate: float | None
    tool_share: float | None
    rows_match: bool
    spoken: tuple[str, ...]
    rows: Mapping[str, Any]
    result: Mapping[str, Any]

    @property
    def samples(self) -> Sequence[Mapping[str, Any]]:
        """Return the samples of the server's host, one per second."""
        return self.result.get("samples") or ()

    @property
    def sampled(self) -> Sequence[Mapping[str, Any]]:
        """Return the agent's own answers (ANSWER of agents/hostagent/protocol.py)."""
        return (self.result.get("answers") or {}).get("seen") or ()

    @property
    def before(self) -> Mapping[str, Mapping[str, Any]]:
        """Return ENVIRONMENT by host (agents/hostagent/monitoring/environment.py)."""
        return self.result.get("hosts") or {}

    @property
    def placements(self) -> Mapping[str, Mapping[str, Any]]:
        """Return PLACEMENT by host (agents/hostagent/protocol.py)."""
        return self.result.get("placement") or {}

    @property
    def during(self) -> Mapping[str, Mapping[str, Any]]:
        """Return INTERFERENCE by host."""
        return self.result.get("interference") or {}
