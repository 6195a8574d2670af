"""What a process tree used so far, as far as its system tells."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional


class Usage(NamedTuple):
    """Sums over the living processes of a tree; None for what the system does not tell.

    `peak_rss_bytes` adds up each process's own peak; read and written is what storage moved.
    """

    cpu_s: Optional[float] = None
    rss_bytes: Optional[int] = None
    peak_rss_bytes: Optional[int] = None
    voluntary_switches: Optional[int] = None
    involuntary_switches: Optional[int] = None
    read_bytes: Optional[int] = None
    written_bytes: Optional[int] = None


def total(usages: list[Usage]) -> Optional[Usage]:
    """Their sum, where a field that one of them lacks is unknown; None for no processes."""
    if not usages:
        return None
    columns = {name: [getattr(one, name) for one in usages] for name in Usage._fields}
    return Usage(
        **{name: None if None in column else sum(column) for name, column in columns.items()}
    )


def grown(before: Optional[tuple[Any, ...]], after: Optional[tuple[Any, ...]], name: str) -> Any:
    """The growth of a field; None where a process ended in between and took its count along."""
    was, now = getattr(before, name, None), getattr(after, name, None)
    return None if was is None or now is None or now < was else now - was
