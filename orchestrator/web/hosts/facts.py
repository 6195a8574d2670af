"""The facts of a host, in groups and words for its page."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cli.pitwall.units import format_duration
from orchestrator.fleet.fact_texts import format_fact_value
from orchestrator.fleet.facts import Contradiction

#: Title → the facts of that group, in order; `x*` means all facts with this prefix.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Processor": (
        "cpu_model", "machine", "cores", "threads", "usable_cpus", "clock_base_mhz",
        "clock_min_mhz", "clock_max_mhz", "microcode", "scaling_driver", "governor",
        "energy_preference", "turbo", "smt", "mitigations", "temperature*",
    ),
    "Memory and disk": ("memory*", "swap*", "disk*", "transparent*", "numa*"),
    "System": (
        "system", "os_name", "os_version", "kernel", "kernel_parameters", "libc", "firmware",
        "aslr", "hostname", "virtualisation", "container",
        "clock_source", "time", "boot_id", "uptime_s", "load",
    ),
    "Power": ("platform_profile", "power*", "battery*"),
    "Limits and tuning": ("limits*", "tuning*", "network*"),
    "Programs": ("python", "python_path", "tools", "languages", "programs"),
}  # fmt: skip
REST = "Other"
#: A larger difference is shown; a smaller one may come from the transfer of the facts.
CLOCK_OFF_S = 30.0
_OF_PROGRAMS = frozenset({"tools", "languages", "programs"})
#: Keys about the facts, which are not facts themselves.
_HIDDEN = frozenset({"reasons", "static", "topology"})
_TITLES = {
    "cpu_model": "CPU", "os_name": "operating system", "os_version": "version",
    "clock_base_mhz": "base clock", "clock_min_mhz": "lowest clock",
    "clock_max_mhz": "highest clock",
    "aslr": "address randomisation", "network_available": "emulated network",
    "tuning_left": "tuning that was not restored",
    "usable_cpus": "usable CPUs",
    "memory_bytes": "memory", "uptime_s": "up since boot", "smt": "SMT", "boot_id": "boot",
    "time": "its clock", "machine": "architecture", "load": "load average",
    "os": "operating system", "base_clock_mhz": "base clock", "boost_clock_mhz": "boost clock",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """`value` is None if it is unknown; then `why` is the reason, if there is one."""

    title: str
    value: str | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactGroup:
    title: str
    rows: tuple[FactRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactPair:
    """A fact on both sides: before and after, or the profile's and the host's."""

    title: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    at: datetime
    facts: tuple[FactPair, ...]


def build_fact_change(at: datetime, changed: Mapping[str, Any]) -> FactChange:
    """Return a change of facts. `changed`: fact → [before, after]."""
    facts = (_build_fact_pair(name, *sides) for name, sides in changed.items())
    return FactChange(at=at, facts=tuple(facts))


def build_contradiction_pair(each: Contradiction) -> FactPair:
    return _build_fact_pair(each.field, each.profile, each.host)


def describe_clock_offset(facts: Mapping[str, Any], taken_at: datetime) -> str:
    """Return how far the host's clock is off, in words; empty if the difference is small."""
    host_time = facts.get("time")
    if not isinstance(host_time, int | float):
        return ""
    off_s = host_time - taken_at.timestamp()
    if abs(off_s) < CLOCK_OFF_S:
        return ""
    return f"{format_duration(abs(off_s))} {'ahead' if off_s > 0 else 'behind'}"


def describe_unrestored_tuning(facts: Mapping[str, Any]) -> str:
    """Return the settings that Pitwall could not restore, with their files; empty without any."""
    left = facts.get("tuning_left")
    return format_fact_value("tuning_left", left) if left else ""


def group_facts(facts: Mapping[str, Any]) -> list[FactGroup]:
    """Return all facts, including those without a group; empty groups are left out."""
    reasons = facts.get("reasons")
    reasons = reasons if isinstance(reasons, Mapping) else {}
    grouped: dict[str, list[str]] = {title: [] for title in (*GROUPS, REST)}
    for name in sorted(facts.keys() - _HIDDEN, key=_place):
        grouped[_find_group(name)].append(name)
    return [
        FactGroup(
            title=title,
            rows=tuple(row for n in names for row in _iterate_rows(n, facts[n], reasons)),
        )
        for title, names in grouped.items()
        if names
    ]


def format_fact_title(name: str) -> str:
    """Return `memory_bytes` as "memory"."""
    known = _TITLES.get(name)
    return known or re.sub("_(bytes|mhz|percent)$", "", name).replace("_", " ")


def _build_fact_pair(name: str, before: Any, after: Any) -> FactPair:
    return FactPair(
        title=format_fact_title(name),
        before=format_fact_value(name, before),
        after=format_fact_value(name, after),
    )


def _iterate_rows(name: str, value: Any, reasons: Mapping[str, Any]) -> Iterator[FactRow]:
    if value is None:
        yield FactRow(title=format_fact_title(name), value=None, reason=str(reasons.get(name, "")))
    elif name in _OF_PROGRAMS and isinstance(value, Mapping):
        yield from _iterate_program_rows(value, reasons)
    else:
        yield FactRow(title=format_fact_title(name), value=format_fact_value(name, value))


def _iterate_program_rows(
    programs: Mapping[str, Any], reasons: Mapping[str, Any]
) -> Iterator[FactRow]:
    """Yield one row for each installed program, and one for all missing ones."""
    for name, entry in sorted(programs.items()):
        if isinstance(entry, Mapping):
            version = entry.get("version") or "version unknown"
            where = f" at {entry['path']}" if entry.get("path") else ""
            yield FactRow(title=name, value=f"{version}{where}")
        elif entry is not None or name in reasons:
            yield FactRow(title=name, value=entry and str(entry), reason=str(reasons.get(name, "")))
    missing = [
        name for name, entry in sorted(programs.items()) if entry is None and name not in reasons
    ]
    if missing:
        yield FactRow(title="not found", value=", ".join(missing))


def _find_group(name: str) -> str:
    return next((title for title, names in GROUPS.items() if _index(names, name) is not None), REST)


def _place(name: str) -> tuple[int, str]:
    indices = (_index(names, name) for names in GROUPS.values())
    return next((index for index in indices if index is not None), len(_TITLES)), name


def _index(names: tuple[str, ...], name: str) -> int | None:
    matches = (
        place
        for place, each in enumerate(names)
        if each == name or (each.endswith("*") and name.startswith(each[:-1]))
    )
    return next(matches, None)
