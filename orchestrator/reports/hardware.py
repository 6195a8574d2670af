"""The machines of a report: measured hosts, and the profiles of reference results."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.fleet.fact_texts import format_fact_value
from orchestrator.fleet.models import HardwareProfile, HostSnapshot
from orchestrator.reports.report_builder import Report

HEADS = ("Machine", "CPU", "Cores", "Threads", "Memory", "Operating system", "Kernel", "Virtual")
#: The text of a fact that is not known.
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One row of the table of hardware; `published`: others measured on it."""

    name: str
    published: bool
    texts: tuple[str, ...]


def list_machines(report: Report, snapshots: Mapping[Any, HostSnapshot]) -> Iterator[Machine]:
    """Yield the machines of a report in the order of its hosts. `snapshots`: those of its hosts."""
    for host in report.hosts:
        snapshot = snapshots.get(host.pk)
        facts = snapshot.facts if snapshot else {}
        yield Machine(name=host.name, published=False, texts=_build_texts(facts))
    yield from _list_references(report)


def load_snapshots(report: Report) -> Mapping[Any, HostSnapshot]:
    """Return for each host the last snapshot before the report's trials."""
    rows = HostSnapshot.objects.filter(host__in=report.hosts, jobs__trials__in=report.trials)
    last = rows.order_by("host_id", "-taken_at", "-pk").distinct("host_id")
    return {snapshot.host_id: snapshot for snapshot in last}


def _build_texts(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the facts; reasons of missing ones are messages of the host, for members only."""
    system = " ".join(
        str(facts[name]) for name in ("os_name", "os_version") if facts.get(name) is not None
    )
    names = ("cpu_model", "cores", "threads", "memory_bytes")
    return (
        *(_format(name, facts.get(name)) for name in names),
        system or UNKNOWN,
        _format("kernel", facts.get("kernel")),
        _format("virtualisation", facts.get("virtualisation")),
    )


def _list_references(report: Report) -> Iterator[Machine]:
    team = report.benchmark.project.team_id
    profiles = HardwareProfile.objects.filter(team=team, slug__in=report.references)
    known = {profile.slug: profile for profile in profiles}
    for name in report.references:
        profile = known.get(name)
        texts: tuple[str, ...] = ("–",) * (len(HEADS) - 1)
        if profile is not None:
            texts = (
                profile.cpu_model or UNKNOWN,
                _format("cores", profile.cores),
                _format("threads", profile.threads),
                _format("memory_bytes", profile.memory_bytes),
                profile.os or UNKNOWN,
                "–",
                "–",
            )
        yield Machine(name=profile.name if profile else name, published=True, texts=texts)


def _format(name: str, value: Any) -> str:
    return UNKNOWN if value is None or value == "" else format_fact_value(name, value)
