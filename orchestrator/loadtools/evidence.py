"""What a verdict on a load rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.loadtools.model import Distribution, LoadFacts, LoadSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was asked of a load, and what came.

    `rows` is the agent's rows.json; `result` its result.json with the fields of the load among
    them. `errors` is None where the tool does not tell all of them. `spoken`: every protocol that
    the tool or a check saw, the tool first.
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
        """Of the server's host, one a second."""
        return self.result.get("samples") or ()

    @property
    def before(self) -> Mapping[str, Mapping[str, Any]]:
        """ENVIRONMENT by host (agents/hostagent/monitoring/environment.py)."""
        return self.result.get("hosts") or {}

    @property
    def during(self) -> Mapping[str, Mapping[str, Any]]:
        """INTERFERENCE by host."""
        return self.result.get("interference") or {}
