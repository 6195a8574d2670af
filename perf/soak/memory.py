"""Memory of processes over time, and whether it grows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np
from scipy.stats import theilslopes

from devstack.processes import find_descendants
from perf.harness.processes import read_memory

#: Consecutive samples are correlated, so the line is fitted to means of groups.
PARTS = 20
CONFIDENCE = 0.95

Samples = list[tuple[float, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Growth per hour as a share of the mean, with an interval of 95 %.

    `course_mib`: the means of equal parts of the whole time.
    """

    mean_bytes: float
    share_an_hour: float
    low: float
    high: float
    course_mib: tuple[float, ...]


def estimate_growth(samples: Sequence[tuple[float, int]]) -> Growth:
    """Return the median of slopes (Theil-Sen) over the second half of the (seconds, bytes) samples.

    Single outliers do not affect it. Raise ValueError if that half has fewer than eight samples.
    """
    middle = (samples[0][0] + samples[-1][0]) / 2
    late = [each for each in samples if each[0] >= middle]
    if len(late) < 8:
        raise ValueError(f"{len(late)} samples are too few to see a slope")
    hours, sizes = _average_parts(late)
    slope, _, low, high = theilslopes(sizes, hours, CONFIDENCE)
    mean = fmean(sizes)
    shares = [float(each) / mean for each in (slope, low, high)]
    return Growth(
        mean_bytes=mean,
        share_an_hour=shares[0],
        low=shares[1],
        high=shares[2],
        course_mib=tuple(round(size / 2**20, 1) for size in _average_parts(samples)[1]),
    )


def _average_parts(samples: Sequence[tuple[float, int]]) -> tuple[list[float], list[float]]:
    """Return means of equal parts: hours, and bytes."""
    services = [part for part in np.array_split(np.array(samples, dtype=float), PARTS) if len(part)]
    means = [part.mean(axis=0) for part in services]
    return [float(each[0]) / 3600 for each in means], [float(each[1]) for each in means]


@dataclass(slots=True, kw_only=True)
class Watch:
    """Samples the memory of whole process trees in a separate thread during the block.

    `own` is anonymous memory, with shared parts counted once. Pages of libraries are shared with
    agents and workers that come and go, which would look like growth. `rss` is everything. `ended`
    are processes that have disappeared.
    """

    pids: Mapping[str, int]
    every_s: float
    tick: Callable[[], None]
    own: dict[str, Samples] = field(default_factory=dict)
    rss: dict[str, Samples] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(self.every_s):
            now = time.monotonic()
            for name, pid in self.pids.items():
                sizes = [read_memory(each) for each in (pid, *find_descendants(pid))]
                if not sizes[0].rss:
                    self.ended.add(name)
                    continue
                self.own.setdefault(name, []).append((now, sum(each.anonymous for each in sizes)))
                self.rss.setdefault(name, []).append((now, sum(each.rss for each in sizes)))
            self.tick()
