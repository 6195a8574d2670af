"""The size of the benchmark: the whole, or its shortest form, which checks that it works."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Pairs of each load. Times of loads are whole seconds, since wrk accepts no others.

    `idle_s`: how long the services are measured without work.
    """

    pairs: int
    warmup_s: int
    duration_s: int
    idle_s: float

    def with_pairs(self, pairs: int | None) -> Extent:
        return self if pairs is None else replace(self, pairs=pairs)


FULL = Extent(pairs=20, warmup_s=2, duration_s=2, idle_s=120)
SHORT = Extent(pairs=2, warmup_s=0, duration_s=1, idle_s=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownExtent:
    """Trials of each tool and distribution with known delays, and their duration."""

    rounds: int
    duration_s: int


KNOWN_FULL = KnownExtent(rounds=3, duration_s=10)
# A shorter load has too few requests for p99.9.
KNOWN_SHORT = KnownExtent(rounds=1, duration_s=10)
