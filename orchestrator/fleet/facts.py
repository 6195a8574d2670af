"""Compare the facts that a host reports with its earlier facts and with its profile. Pure."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.core.ids import sha256_hex

Facts = Mapping[str, Any]

#: Facts that identify a machine, for agents that do not list them in `static`.
STATIC = ("cpu_model", "cores", "threads", "memory_bytes", "kernel", "governor", "machine")
#: Relative difference that a number may have from the profile's: kernels reserve some memory.
TOLERANCE = {"memory_bytes": 0.1, "base_clock_mhz": 0.05, "boost_clock_mhz": 0.05}
#: The fields that identify a kind of machine.
_KIND = ("cpu_model", "threads", "memory_bytes")
_NOISE_WORDS = re.compile(r"\((?:r|tm)\)|\bCPU\b|\bProcessor\b|\b\d+-Core\b|@.*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """A field that differs between a host and its profile."""

    field: str
    profile: Any
    host: Any


def identify_machine(
    facts: Facts, *, tuning: Mapping[str, str], env: Mapping[str, str], before: Facts
) -> dict[str, Any]:
    """Return the identifying facts of a host while it measures.

    `tuning` replaces its settings. `env`: the variables of measured processes, which identify it as
    its hardware does. A fact that is unknown now keeps its value of `before`, the facts of the
    previous snapshot. So a change is noticed as soon as the fact is known again.
    """
    static, earlier = facts.get("static"), before.get("static")
    if not isinstance(static, Mapping):
        static = {name: facts.get(name) for name in STATIC}
    known = earlier if isinstance(earlier, Mapping) else {}
    environment = "; ".join(f"{name}={value}" for name, value in sorted(env.items()))
    return {
        name: known.get(name) if value is None else value
        for name, value in {**static, **tuning, "environment": environment}.items()
    }


def compute_fingerprint(static: Facts) -> str:
    """Return SHA-256 of identifying facts: it differs for another or a changed machine."""
    return sha256_hex(json.dumps(static, sort_keys=True).encode())


def compare_facts(before: Facts, after: Facts) -> dict[str, list[Any]]:
    """Return the identifying facts that changed, as fact → [before, after].

    A fact that is unknown on either side is no change: another agent may report more or fewer.
    """
    old, new = before.get("static"), after.get("static")
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        old, new = ({name: facts.get(name) for name in STATIC} for facts in (before, after))
    return {
        name: [old[name], value]
        for name, value in new.items()
        if value is not None and old.get(name) is not None and old[name] != value
    }


def extract_profile_fields(facts: Facts) -> dict[str, Any]:
    """Return the fields of a profile that the facts of a host contain."""
    system = " ".join(str(facts[key]) for key in ("os_name", "os_version") if facts.get(key))
    fields = {
        "cpu_model": str(facts.get("cpu_model") or "")[:120],
        "cores": _read_whole(facts.get("cores")),
        "threads": _read_whole(facts.get("threads")),
        "base_clock_mhz": _read_whole(facts.get("clock_base_mhz")),
        "boost_clock_mhz": _read_whole(facts.get("clock_max_mhz")),
        "memory_bytes": _read_whole(facts.get("memory_bytes"), limit=2**62),
        "os": system[:100],
    }
    return {name: value for name, value in fields.items() if value}


def find_contradictions(profile: Facts, facts: Facts) -> list[Contradiction]:
    """Return the fields that differ between the host and its profile, if both are known."""
    fields = extract_profile_fields(facts)
    return [
        Contradiction(field=name, profile=profile[name], host=value)
        for name, value in fields.items()
        if profile.get(name) and not _values_agree(name, profile[name], value)
    ]


def is_same_machine_kind(profile: Facts, fields: Facts) -> bool:
    """Return whether a profile certainly describes a machine with these fields.

    CPU, threads and memory have to be known on both sides, and no known field may differ.
    """
    known = all(profile.get(name) and fields.get(name) for name in _KIND)
    return known and all(
        _values_agree(name, profile[name], value)
        for name, value in fields.items()
        if profile.get(name)
    )


def describe_machine_kind(fields: Facts) -> str:
    """Return a name for a profile, such as "AMD EPYC 7763, 4 CPUs, 16 GiB"; "" without facts."""
    cpu = " ".join(_NOISE_WORDS.sub(" ", str(fields.get("cpu_model") or "")).split())
    threads, memory = fields.get("threads") or fields.get("cores"), fields.get("memory_bytes")
    parts = [
        cpu[:60],
        f"{threads} CPU{'s' if threads != 1 else ''}" if threads else "",
        # Kernels reserve some memory: a machine of 16 GiB reports less.
        f"{max(1, math.ceil(memory / 2**30))} GiB" if memory else "",
    ]
    return ", ".join(part for part in parts if part)


def _values_agree(name: str, wanted: Any, actual: Any) -> bool:
    if isinstance(wanted, str):
        # "Intel Core i5-8365U" is "Intel(R) Core(TM) i5-8365U CPU @ 1.60GHz".
        return _split_words(wanted) <= _split_words(actual)
    return abs(actual - wanted) <= TOLERANCE.get(name, 0.0) * wanted


def _split_words(text: str) -> set[str]:
    plain = re.sub(r"\((?:r|tm)\)", " ", text.lower())
    return set(re.findall(r"[a-z0-9]+", plain))


def _read_whole(value: Any, limit: int = 2**31 - 1) -> int | None:
    """Return a host's value as a whole number; None if a profile cannot hold it."""
    return round(value) if isinstance(value, int | float) and 0 < value <= limit else None
