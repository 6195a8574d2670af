"""A benchmark's report: a table for people, and one JSON object as its last line."""

from __future__ import annotations

import json
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent.parent / "results"

_RELATIONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The target of a value: a relation and a limit, or None if it is only reported."""

    relation: str
    limit: float

    def holds(self, measured: float) -> bool:
        return bool(_RELATIONS[self.relation](measured, self.limit))

    def __str__(self) -> str:
        return f"{self.relation} {self.limit:g}"


def judge_requirements(
    name: str, measured: dict[str, float], wanted: dict[str, Requirement | None]
) -> dict[str, Any]:
    """Return the object of the last line; both mappings have the same keys."""
    if measured.keys() != wanted.keys():
        raise ValueError(f"measured and wanted differ: {measured.keys() ^ wanted.keys()}")
    return {
        "name": name,
        "measured": {key: round(value, 4) for key, value in measured.items()},
        "wanted": {key: str(want) if want else None for key, want in wanted.items()},
        "met": all(want.holds(measured[key]) for key, want in wanted.items() if want),
    }


def render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return columns of minimum width; the first one is left-aligned, the others right-aligned."""
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, ["-" * width for width in widths], *rows)
    ]
    return "\n".join(lines)


def keep(name: str, result: dict[str, Any]) -> Path:
    """Write a result to perf/results, which has the results of the last full run."""
    RESULTS.mkdir(exist_ok=True)
    path = _find_file(name)
    path.write_text(json.dumps(result, indent=2, sort_keys=True) + "\n")
    return path


def load_kept(name: str) -> dict[str, Any]:
    """Return the kept result of a benchmark; empty without one."""
    path = _find_file(name)
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _find_file(name: str) -> Path:
    return RESULTS / f"{name}.json"
