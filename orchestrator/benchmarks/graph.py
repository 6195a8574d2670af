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


def map_parents(nodes: Iterable[Node]) -> dict[str, tuple[str, ...]]:
    return {node.sha: node.parents for node in nodes}


def sort_topologically(nodes: Iterable[Node]) -> list[str]:
    """Return all commits, parents before children; among the possible next ones the oldest."""
    known = {node.sha: node for node in nodes}
    missing = {sha: sum(p in known for p in set(node.parents)) for sha, node in known.items()}
    children = _map_children(map_parents(known.values()))
    ready = [(node.committed_at, sha) for sha, node in known.items() if not missing[sha]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, sha = heapq.heappop(ready)
        order.append(sha)
        for child in children[sha]:
            missing[child] -= 1
            if not missing[child]:
                heapq.heappush(ready, (known[child].committed_at, child))
    return order


def follow_first_parents(parents: Parents, tip: str) -> list[str]:
    """Return the line of first parents up to `tip`, oldest first; empty for an unknown tip."""
    line = []
    at: str | None = tip
    while at is not None and at in parents:
        line.append(at)
        at = parents[at][0] if parents[at] else None
    return line[::-1]


def find_ancestors(parents: Parents, tip: str) -> set[str]:
    """Return the known commits that `tip` contains, including itself."""
    ancestors: set[str] = set()
    todo = [tip]
    while todo:
        sha = todo.pop()
        if sha in parents and sha not in ancestors:
            ancestors.add(sha)
            todo += parents[sha]
    return ancestors


def find_ancestry_path(nodes: Sequence[Node], before: str, after: str) -> list[str]:
    """Return the commits that contain `before` and that `after` contains, including `after`.

    Parents come first, `before` is excluded; empty if `after` does not contain it.
    """
    parents = map_parents(nodes)
    inside = find_ancestors(parents, after)
    if before not in inside:
        return []
    children = _map_children(parents)
    descendants: set[str] = set()
    todo = [before]
    while todo:
        for child in children[todo.pop()]:
            if child in inside and child not in descendants:
                descendants.add(child)
                todo.append(child)
    return [sha for sha in sort_topologically(nodes) if sha in descendants]


def find_main_path(parents: Parents, before: str, after: str) -> list[str]:
    """Return the commits after `before` up to `after` along first parents; empty without a path."""
    line = follow_first_parents(parents, after)
    return line[line.index(before) + 1 :] if before in line else []


def merge_base(nodes: Sequence[Node], one: str, other: str) -> str | None:
    """Return the newest commit that both contain; None if no common commit is known."""
    parents = map_parents(nodes)
    common = find_ancestors(parents, one) & find_ancestors(parents, other)
    ordered = sort_topologically([node for node in nodes if node.sha in common])
    inner = {parent for sha in common for parent in parents[sha]}
    return next((sha for sha in reversed(ordered) if sha not in inner), None)


def assign_lanes(nodes: Sequence[Node], *, tip: str) -> Lanes:
    """Return lane 0 for the first-parent line of `tip`; each other line gets the lowest free lane.

    A line follows first parents, from the newest commit without a line to the commit where it
    branched off. Lines share a lane if they do not overlap.
    """
    parents = map_parents(nodes)
    order = {sha: place for place, sha in enumerate(sort_topologically(nodes))}
    children = _map_children(parents)
    lane = dict.fromkeys(follow_first_parents(parents, tip), 0)
    #: For each lane but the first, the oldest place of its lines.
    begins: list[int] = []
    for sha in sorted(order, key=order.__getitem__, reverse=True):
        if sha in lane:
            continue
        line, root = _follow_own_line(parents, sha, lane)
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


def _follow_own_line(parents: Parents, tip: str, taken: Mapping[str, int]) -> tuple[list[str], str]:
    """Return the commits from `tip` down that have no line, and the commit where they meet one."""
    line: list[str] = []
    at = tip
    while at in parents and at not in taken:
        line.append(at)
        at = parents[at][0] if parents[at] else ""
    return line, at


def _map_children(parents: Parents) -> dict[str, list[str]]:
    children: dict[str, list[str]] = defaultdict(list)
    for sha, above in parents.items():
        for parent in dict.fromkeys(above):
            if parent in parents:
                children[parent].append(sha)
    return children
