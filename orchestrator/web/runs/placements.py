"""Convert placements between text and data."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import forms

from orchestrator.runs.models import HostRole, Job, Placement, Run, Schedule
from orchestrator.runs.rerun import load_ordered_jobs, load_requested_placements

EXPECTED = "expected role=host for each role, such as target=rack-1 generator=tag:load"


class PlacementsField(forms.CharField):
    """Lines such as `target=rack-1 generator=tag:load`; cleaned to a mapping for each line."""

    widget = forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "class": "code"})

    def to_python(self, value: Any) -> Any:
        lines = [line for line in (super().to_python(value) or "").splitlines() if line.strip()]
        return [_parse_placement(line) for line in lines]


def _parse_placement(line: str) -> dict[str, str]:
    placement: dict[str, str] = {}
    for word in line.split():
        role, equals, host = word.partition("=")
        if not equals or not host or role not in HostRole.values or role in placement:
            raise forms.ValidationError(f"“{line.strip()}”: {EXPECTED}")
        placement[role] = host
    return placement


def build_form_data(run: Run) -> dict[str, Any]:
    """Return form fields that request the placements of a run again."""
    return build_placements_form_data(load_requested_placements(run))


def build_placements_form_data(placements: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return the same for placements, each a host by role."""
    others = [{role: at for role, at in each.items() if role != "target"} for each in placements]
    if any(each != others[0] for each in others):
        return {"placements": "\n".join(_format_line(each) for each in placements)}
    return {"hosts": [each["target"] for each in placements], **(others[0] if others else {})}


def place_names(run: Run) -> list[str]:
    """Return where a run is measured: its target hosts, or the request until they are chosen."""
    names = [describe_target(job) for job in load_ordered_jobs(run)]
    return list(dict.fromkeys(names))


def describe_target(job: Job) -> str:
    """Return the target host, or the request for one."""
    if job.host is not None:
        return job.host.name
    wanted = (place for place in job.placements.all() if place.role == HostRole.TARGET)
    return next((format_placement(place) for place in wanted), "–")


def format_placement(place: Placement) -> str:
    """Return the request of a placement in words."""
    if place.wanted_host is not None:
        return place.wanted_host.name
    if place.wanted_profile is not None:
        return f"any {place.wanted_profile.name}"
    return f"any tagged {place.wanted_tag}"


def describe_schedule_hosts(schedule: Schedule) -> str:
    """Return where a schedule's runs are measured, as requested."""
    written = (
        each["target"] if len(each) == 1 else _format_line(each) for each in schedule.placements
    )
    return ", ".join([*(host.name for host in schedule.hosts.all()), *written])


def _format_line(roles: Mapping[str, str]) -> str:
    order: Iterable[str] = (role for role in HostRole.values if role in roles)
    return " ".join(f"{role}={roles[role]}" for role in order)
