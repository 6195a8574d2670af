"""The resource usage of a process tree so far, as far as its system reports it."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional


class Usage(NamedTuple):
    """Sums over the living processes of a tree; None for fields that the system does not report.

    `waited_s` is the part of `cpu_s` of ended children that their parent has waited for.
    `peak_rss_bytes` is the sum of the peaks of the processes; read and written bytes are those of
    the storage.
    """

    cpu_s: Optional[float] = None
    waited_s: Optional[float] = None
    rss_bytes: Optional[int] = None
    peak_rss_bytes: Optional[int] = None
    voluntary_switches: Optional[int] = None
    involuntary_switches: Optional[int] = None
    read_bytes: Optional[int] = None
    written_bytes: Optional[int] = None


def sum_usages(usages: list[Usage]) -> Optional[Usage]:
    """Return the sum; a field that is unknown for one is unknown. None without processes."""
    if not usages:
        return None
    columns = {name: [getattr(usage, name) for usage in usages] for name in Usage._fields}
    return Usage(
        **{name: None if None in column else sum(column) for name, column in columns.items()}
    )


def compute_growth(
    before: Optional[tuple[Any, ...]], after: Optional[tuple[Any, ...]], name: str
) -> Any:
    """Return the growth of a field; None if it is unknown or shrank, because a process ended."""
    was, now = getattr(before, name, None), getattr(after, name, None)
    return None if was is None or now is None or now < was else now - was
