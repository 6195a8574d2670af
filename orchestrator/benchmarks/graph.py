"""The graph of commits: their order, the main line, branches and merges. No Django.

All functions take the known part of a graph: a parent that is not among the commits is its end.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

#: Hash → hashes of the parents, first parent first.
Parents = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A commit in the graph."""

    sha: str
    parents: tuple[str, ...]
    committed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """The horizontal places of commits in a chart: 0 is the main line.

    `links`: (commit, parent) for each known parent on another lane, where a branch starts or is
    merged.
    """

    lane: Mapping[str, int]
    links: tuple[tuple[str, str], ...]


def parents_of(nodes: Iterable[Node]) -> dict[str, tuple[str, ...]]:
    return {node.sha: node.parents for node in nodes}


def topological(nodes: Iterable[Node]) -> list[str]:
    """Return all commits, parents before children; among the possible next ones the oldest."""
    known = {node.sha: node for node in nodes}
    missing = {sha: sum(p in known for p in set(node.parents)) for sha, node in known.items()}
    children = _children(parents_of(known.values()))
    ready = [(node.committed_at, sha) for sha, node in known.items() if not missing[sha]]
    heapq.heapify(ready)
    found = []
    while ready:
        _, sha = heapq.heappop(ready)
        found.append(sha)
        for child in children[sha]:
            missing[child] -= 1
            if not missing[child]:
                heapq.heappush(ready, (known[child].committed_at, child))
    return found


def first_parent_line(parents: Parents, tip: str) -> list[str]:
    """Return the line of first parents up to `tip`, oldest first; empty for an unknown tip."""
    line = []
    at: str | None = tip
    while at is not None and at in parents:
        line.append(at)
        at = parents[at][0] if parents[at] else None
    return line[::-1]


def ancestors(parents: Parents, tip: str) -> set[str]:
    """Return the known commits that `tip` contains, including itself."""
    found: set[str] = set()
    todo = [tip]
    while todo:
        sha = todo.pop()
        if sha in parents and sha not in found:
            found.add(sha)
            todo += parents[sha]
    return found


def ancestry_path(nodes: Sequence[Node], before: str, after: str) -> list[str]:
    """Return the commits that contain `before` and that `after` contains, including `after`.

    Parents come first, `before` is excluded; empty if `after` does not contain it.
    """
    parents = parents_of(nodes)
    inside = ancestors(parents, after)
    if before not in inside:
        return []
    children = _children(parents)
    descendants: set[str] = set()
    todo = [before]
    while todo:
        for child in children[todo.pop()]:
            if child in inside and child not in descendants:
                descendants.add(child)
                todo.append(child)
    return [sha for sha in topological(nodes) if sha in descendants]


def main_path(parents: Parents, before: str, after: str) -> list[str]:
    """Return the commits after `before` up to `after` along first parents; empty without a path."""
    line = first_parent_line(parents, after)
    return line[line.index(before) + 1 :] if before in line else []


def merge_base(nodes: Sequence[Node], one: str, other: str) -> str | None:
    """Return the newest commit that both contain; None if no common commit is known."""
    parents = parents_of(nodes)
    common = ancestors(parents, one) & ancestors(parents, other)
    ordered = topological([node for node in nodes if node.sha in common])
    inner = {parent for sha in common for parent in parents[sha]}
    return next((sha for sha in reversed(ordered) if sha not in inner), None)


def lanes(nodes: Sequence[Node], *, tip: str) -> Lanes:
    """Return lane 0 for the first-parent line of `tip`; each other line gets the lowest free lane.

    A line follows first parents, from the newest commit without a line to the commit where it
    branched off. Lines share a lane if they do not overlap.
    """
    parents = parents_of(nodes)
    order = {sha: place for place, sha in enumerate(topological(nodes))}
    children = _children(parents)
    lane = dict.fromkeys(first_parent_line(parents, tip), 0)
    #: For each lane but the first, the oldest place of its lines.
    begins: list[int] = []
    for sha in sorted(order, key=order.__getitem__, reverse=True):
        if sha in lane:
            continue
        line, root = _own_line(parents, sha, lane)
        first = order[root] if root in order else order[line[-1]]
        end = max(order[each] for each in (sha, *children[sha]))
        free = next((n for n, begin in enumerate(begins) if end <= begin), len(begins))
        begins[free : free + 1] = [first]
        lane.update(dict.fromkeys(line, free + 1))
    links = tuple(
        (sha, parent)
        for sha in order
        for parent in parents[sha]
        if parent in lane and lane[parent] != lane[sha]
    )
    return Lanes(lane=lane, links=links)


def _own_line(parents: Parents, tip: str, taken: Mapping[str, int]) -> tuple[list[str], str]:
    """Return the commits from `tip` down that have no line, and the commit where they meet one."""
    line: list[str] = []
    at = tip
    while at in parents and at not in taken:
        line.append(at)
        at = parents[at][0] if parents[at] else ""
    return line, at


def _children(parents: Parents) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for sha, above in parents.items():
        for parent in dict.fromkeys(above):
            if parent in parents:
                found[parent].append(sha)
    return found
