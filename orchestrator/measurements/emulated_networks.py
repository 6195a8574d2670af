"""The emulated network of a trial: what was requested, and what the agent measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from cli.pitwall.units import format_percent, format_seconds
from orchestrator.loadtools.emulated_network import EmulatedNetwork, format_bit_rate

_Seconds = Annotated[float, Field(ge=0, le=3600)]
_Direction = Annotated[str, StringConstraints(pattern="^(requests|responses)$")]


class Lost(BaseModel):
    sent: Annotated[int, Field(ge=0, le=10**9)]
    lost: Annotated[int, Field(ge=0, le=10**9)]


class MeasuredNetwork(BaseModel):
    """NETWORK of agents/hostagent/protocol.py."""

    model_config = ConfigDict(frozen=True)

    round_trip_s: _Seconds | None
    jitter_s: _Seconds | None
    lost: Annotated[dict[_Direction, Lost], Field(max_length=2)]
    rate_bps: dict[_Direction, Annotated[float, Field(ge=0, le=1e15)]] | None
    queues: Annotated[str, StringConstraints(max_length=2000)]
    changed: bool


class TrialNetwork(BaseModel):
    """`title`: what was requested, in words. `measured` is None if the host reported nothing."""

    model_config = ConfigDict(frozen=True)

    title: str
    requested: EmulatedNetwork
    measured: MeasuredNetwork | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRow:
    """One property, as requested and as measured."""

    title: str
    requested: str
    measured: str


def build_network_provenance(requested: EmulatedNetwork | None, measured: object) -> dict[str, Any]:
    """Return the field of the provenance; empty for a trial without an emulated network."""
    if requested is None:
        return {}
    try:
        read = MeasuredNetwork.model_validate(measured)
    except ValidationError:
        read = None
    network = TrialNetwork(title=str(requested), requested=requested, measured=read)
    return {"network": network.model_dump()}


def list_network_rows(provenance: Mapping[str, Any]) -> list[NetworkRow]:
    """Return the emulated network of a trial for its page; empty without one."""
    if not provenance.get("network"):
        return []
    network = TrialNetwork.model_validate(provenance["network"])
    requested, measured = network.requested, network.measured
    if measured is None:
        return [NetworkRow(title="All", requested=network.title, measured="unknown")]
    rows = [_row("Round trip", requested.delay_s, measured.round_trip_s, format_seconds)]
    if requested.jitter_s:
        rows.append(_row("Jitter", requested.jitter_s, measured.jitter_s, format_seconds))
    for direction, counts in measured.lost.items():
        found = f"{counts.lost:,} of {counts.sent:,} packets"
        title = f"Loss of {direction}"
        rows.append(
            NetworkRow(title=title, requested=format_percent(requested.loss), measured=found)
        )
    for direction, rate in (measured.rate_bps or {}).items():
        rows.append(_row(f"Rate of {direction}", requested.rate_bps, rate, format_bit_rate))
    return rows


def _row(
    title: str, requested: float | None, measured: float | None, show: Callable[[float], str]
) -> NetworkRow:
    values = ["unknown" if value is None else show(value) for value in (requested, measured)]
    return NetworkRow(title=title, requested=values[0], measured=values[1])
