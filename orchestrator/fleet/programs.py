"""Programs that a host reports. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

#: Keys of facts that contain programs.
_KINDS = ("tools", "languages", "programs")


def find_program(facts: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Return the facts about a program by its command's name; None if it is missing."""
    for kind in _KINDS:
        found = (facts.get(kind) or {}).get(name)
        if isinstance(found, Mapping) and found.get("path"):
            return found
    return None


def list_versions(facts: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the versions of these programs; None for a missing program or an unknown version."""
    return {name: (find_program(facts, name) or {}).get("version") for name in sorted(names)}
