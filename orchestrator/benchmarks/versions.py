"""Differences between two texts of a definition. No Django."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.spec import Spec

#: Unchanged lines around a change.
CONTEXT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """`sign`: `+`, `-`, a space, or `@` for omitted unchanged lines."""

    sign: str
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChanges:
    """Labels of added and removed cases, and how many cases keep their history."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    kept: int


def compute_diff(before: str, after: str) -> list[DiffLine]:
    """Return a unified diff by lines; empty if the texts are equal."""
    old, new = before.splitlines(), after.splitlines()
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    groups = list(matcher.get_grouped_opcodes(CONTEXT)) if old != new else []
    lines: list[DiffLine] = []
    for group in groups:
        lines.append(DiffLine(sign="@", old=group[0][1] + 1, new=group[0][3] + 1, text=""))
        for tag, *place in group:
            lines += _build_changed_lines(tag, (place[0], place[1], place[2], place[3]), old, new)
    return lines


def compare_cases(before: Spec, after: Spec) -> CaseChanges:
    """Compare cases by their parameters."""
    old = {case.key: case.label for case in expand(before)}
    new = {case.key: case.label for case in expand(after)}
    return CaseChanges(
        added=tuple(label for key, label in new.items() if key not in old),
        removed=tuple(label for key, label in old.items() if key not in new),
        kept=len(old.keys() & new.keys()),
    )


def _build_changed_lines(
    tag: str, place: tuple[int, int, int, int], old: list[str], new: list[str]
) -> Iterator[DiffLine]:
    begin, end, new_begin, new_end = place
    if tag == "equal":
        for step in range(end - begin):
            yield DiffLine(
                sign=" ", old=begin + step + 1, new=new_begin + step + 1, text=old[begin + step]
            )
        return
    for number in range(begin, end):
        yield DiffLine(sign="-", old=number + 1, new=None, text=old[number])
    for number in range(new_begin, new_end):
        yield DiffLine(sign="+", old=None, new=number + 1, text=new[number])
