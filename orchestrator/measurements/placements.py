"""The CPUs of a trial on each host, as the agent reports them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from agents.hostagent.platform.topology import format_cpus
from orchestrator.measurements.environment import format_process, map_host_names
from orchestrator.runs.models import Trial

_Cpus = Annotated[list[Annotated[int, Field(ge=0, lt=2**14)]], Field(max_length=2**12)]
_Text = Annotated[str, StringConstraints(max_length=4000)]
#: The server, the load tool and the services.
_MOST_SHARES = 30


class Placement(BaseModel):
    """PLACEMENT of agents/hostagent/protocol.py."""

    model_config = ConfigDict(frozen=True)

    cpus: Annotated[dict[_Text, _Cpus | None], Field(max_length=_MOST_SHARES)]
    system: _Cpus
    agent: _Cpus | None
    siblings: _Cpus
    shared: Annotated[
        list[Annotated[list[_Text], Field(max_length=_MOST_SHARES)]], Field(max_length=2**11)
    ]
    problem: _Text
    note: _Text


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlacement:
    """The CPUs on one host of a trial: (who, CPUs). `remarks`: why they are not separate cores."""

    host: str
    rows: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]


_PLACEMENTS = TypeAdapter(Annotated[dict[_Text, Placement], Field(max_length=3)])


def list_placements(trial: Trial) -> list[HostPlacement]:
    """Return which CPUs the processes of a trial and the agent used on each host."""
    names = map_host_names(trial)
    placements = _read_placements(trial.provenance.get("placement"))
    return [
        _build_host_placement(names.get(label, label), placement)
        for label, placement in sorted(placements.items())
    ]


def describe_cpus(value: object) -> str:
    """Return a stored placement as text: the CPUs of each process, by host; "" if unknown."""
    placements = sorted(_read_placements(value).items())
    hosts = [_describe_processes(placement) for _, placement in placements]
    return "; ".join(filter(None, hosts))


def _describe_processes(placement: Placement) -> str:
    return ", ".join(
        f"{format_process(name)} {'any CPU' if cpus is None else format_cpus(cpus)}"
        for name, cpus in sorted(placement.cpus.items())
    )


def build_placement_provenance(value: object) -> dict[str, Any]:
    """Return the field of the provenance; empty if a host reports something else."""
    placements = _read_placements(value)
    return (
        {"placement": {label: each.model_dump() for label, each in placements.items()}}
        if placements
        else {}
    )


def _read_placements(value: object) -> Mapping[str, Placement]:
    try:
        return _PLACEMENTS.validate_python(value)
    except ValidationError:
        return {}


def _build_host_placement(host: str, placement: Placement) -> HostPlacement:
    rows = [(format_process(name), cpus) for name, cpus in placement.cpus.items()]
    if placement.siblings:
        rows.append(("idle siblings", placement.siblings))
    if placement.system:
        rows.append(("kept for the system", placement.system))
    rows.append(("agent", placement.agent))
    return HostPlacement(
        host=host,
        rows=tuple((who, "any" if cpus is None else format_cpus(cpus)) for who, cpus in rows),
        remarks=tuple(filter(None, (placement.problem, placement.note))),
    )
