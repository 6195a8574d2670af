"""The amount of generated data, and the duration of the measurements."""

from __future__ import annotations

from dataclasses import dataclass

#: The metrics of every trial, with the level of their values.
METRICS = {
    "requests.rate": 20_000.0,
    "latency.p50": 0.004,
    "latency.p99": 0.02,
    "cpu.seconds_per_1k": 0.05,
}
#: Cases of the project that fill a comparison.
WIDE_CASES = 200
#: Trials of a point there and elsewhere: half in the round with the commit before, half after.
WIDE_TRIALS, NARROW_TRIALS = 14, 2
NARROW_HOSTS = 2
#: The number of a run's trials with rows in the engine's tables.
TRIALS_A_RUN = 56


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow:
    """Other projects: `commits` commits, each measured with some cases on two hosts."""

    projects: int
    commits: int
    cases: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The content of a database.

    The wide project has one host. Its `full` latest commits are measured with all cases, earlier
    ones with the first `line` cases, so that every size has a history of `commits`.
    """

    commits: int
    full: int
    line: int
    narrow: Narrow

    @property
    def trials(self) -> int:
        wide = self.full * WIDE_CASES + (self.commits - self.full) * self.line
        narrow = self.narrow.projects * self.narrow.commits * self.narrow.cases * NARROW_HOSTS
        return wide * WIDE_TRIALS + narrow * NARROW_TRIALS

    @property
    def series(self) -> int:
        narrow = self.narrow.projects * self.narrow.cases * NARROW_HOSTS
        return (WIDE_CASES + narrow) * len(METRICS)

    @property
    def all_commits(self) -> int:
        return self.commits + self.narrow.projects * self.narrow.commits


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """`requests` of each page at each size, in `rounds`; `clients` send at once.

    Ingest is measured for `ingest_s` in each of `ingest_rounds`.
    """

    sizes: dict[str, Size]
    clients: int
    requests: int
    rounds: int
    ingest_s: float
    ingest_rounds: int

    @property
    def smallest(self) -> str:
        return next(iter(self.sizes))

    @property
    def largest(self) -> str:
        return list(self.sizes)[-1]


_100K = Size(commits=2_000, full=14, line=2, narrow=Narrow(projects=1, commits=200, cases=13))
_1M = Size(commits=2_000, full=200, line=10, narrow=Narrow(projects=3, commits=2_000, cases=8))
_10M = Size(commits=2_000, full=2_000, line=0, narrow=Narrow(projects=9, commits=2_000, cases=62))
_20K = Size(commits=300, full=5, line=1, narrow=Narrow(projects=1, commits=20, cases=13))

FULL = Extent(
    sizes={"100k": _100K, "1M": _1M, "10M": _10M},
    clients=8,
    requests=240,
    rounds=5,
    ingest_s=5.0,
    ingest_rounds=3,
)
SHORT = Extent(sizes={"20k": _20K}, clients=8, requests=16, rounds=1, ingest_s=1.0, ingest_rounds=1)
