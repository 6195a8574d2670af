"""Programs that a host said it has. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

#: Where facts tell of programs.
_KINDS = ("tools", "languages", "programs")


def program_in(facts: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """What a host's facts tell of a program by its command's name; None where it has none."""
    for kind in _KINDS:
        found = (facts.get(kind) or {}).get(name)
        if isinstance(found, Mapping) and found.get("path"):
            return found
    return None


def versions_in(facts: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The versions of these programs; None for those that are missing or do not tell it."""
    return {name: (program_in(facts, name) or {}).get("version") for name in sorted(names)}
