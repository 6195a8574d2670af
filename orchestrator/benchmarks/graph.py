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


def _map_children(parents: Parents) -> dict[str, list[str]]:
    children: dict[str, list[str]] = defaultdict(list)
    for sha, above in parents.items():
        for parent in dict.fromkeys(above):
            if parent in parents:
                children[parent].append(sha)
    return children
