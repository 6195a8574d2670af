"""The size of the benchmark: the whole, or its shortest form, which checks that it works."""

from __future__ import annotations

from dataclasses import dataclass

from perf.fidelity.extent import Extent


@dataclass(frozen=True, slots=True, kw_only=True)
class DisturbanceExtent:
    """`shares`: cores that the neighbour uses. 0 is a second trial without it: the A/A comparison.

    `blocks`: repetitions of all shares. `load`: the times of a load.
    """

    shares: tuple[float, ...]
    blocks: int
    load: Extent


FULL = DisturbanceExtent(
    shares=(0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
    blocks=10,
    load=Extent(pairs=0, warmup_s=1, duration_s=3, idle_s=0),
)
SHORT = DisturbanceExtent(
    shares=(0.0, 1.0), blocks=2, load=Extent(pairs=0, warmup_s=0, duration_s=1, idle_s=0)
)
