"""Programs that a host reports. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

#: Keys of facts that contain programs.
_KINDS = ("tools", "languages", "programs")


def find_program(facts: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Return the facts about a program by its command's name; None if it is missing."""
    for kind in _KINDS:
        program = (facts.get(kind) or {}).get(name)
        if isinstance(program, Mapping) and program.get("path"):
            return program
    return None


def list_versions(facts: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the versions of these programs; None for a missing program or an unknown version."""
    return {name: (find_program(facts, name) or {}).get("version") for name in sorted(names)}
