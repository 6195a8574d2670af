"""Warnings before the start of a run, in addition to its plan."""

from collections.abc import Iterator

from orchestrator.benchmarks.load_specs import find_unbound_services
from orchestrator.core.clock import utc_now
from orchestrator.runs.placements import PlacementChoice, Roles
from orchestrator.runs.plans import RunPlan


def find_warnings(plan: RunPlan) -> list[str]:
    """Return warnings about closed hosts, and servers that other hosts may not reach."""
    warnings = [text for roles in plan.placements for text in _warn_of_closed_hosts(roles)]
    if any(len(roles) > 1 for roles in plan.placements):
        warnings += [
            f"the process {name} does not use {{bind}}: from another host it is reached only if it "
            "listens on all addresses by itself"
            for name in find_unbound_services(plan.spec)
        ]
    return list(dict.fromkeys(warnings))


def _warn_of_closed_hosts(roles: Roles) -> Iterator[str]:
    now = utc_now()
    for one in roles.values():
        opening = [host.hours.next_open(now, host.timezone) for host in one.candidates]
        if opening and min(opening) > now:
            yield f"{_name_hosts(one)} is closed until {min(opening):%a %d %b %H:%M} UTC"


def _name_hosts(one: PlacementChoice) -> str:
    return f"the host {one.host.name}" if one.host is not None else f"every host of {one.text}"
