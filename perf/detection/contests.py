"""Contests: their rank groups, and paired intervals next to unpaired ones of the same trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.runs.trial_order import order_trials
from orchestrator.stats.contests import ContestEntry, ContestTrial, change_in_contest
from orchestrator.stats.estimates import Estimate, MeanEstimate, change_against, estimate
from orchestrator.stats.ranks import Ranking, compute_ranking
from perf.detection.evaluation import Extent
from perf.harness.report import Requirement, render_table

SERVERS, FASTER = 46, 0.05
#: Noise of a trial, number of blocks.
BOARDS = ((0.01, 7), (0.01, 10), (0.01, 15), (0.02, 7), (0.02, 20), (0.03, 20))
#: The machine drifts by a random step from one trial to the next.
DRIFT = 0.001
#: Runs of a report, rounds of each, noise of a trial, and noise between runs (METHODOLOGY).
RUNS, ROUNDS, TRIAL_NOISE, RUN_NOISE = 3, 7, 0.012, 0.02

WANTED: dict[str, Requirement | None] = {
    "contests_of_46_identical_servers_in_one_group": Requirement(relation=">=", limit=0.95),
    "contests_that_rank_a_server_wrongly": Requirement(relation="<=", limit=0.05),
    "contests_that_rank_a_server_5_percent_faster_first_after_15_blocks": Requirement(
        relation=">=", limit=0.9
    ),
    "paired_interval_to_the_unpaired_one": Requirement(relation="<=", limit=0.5),
    "paired_intervals_that_contain_the_change": Requirement(relation=">=", limit=0.93),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Boards:
    """Shares of simulated boards of one kind.

    Of identical servers: `one_group`. With one server that is 5 % faster: `first`, which rank it
    first and no other; `pairs` of it with another server that are proven; `wrong`, with a false
    claim.
    """

    noise: float
    blocks: int
    one_group: float
    first: float
    pairs: float
    wrong: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """The mean width of paired intervals of a change to that of unpaired ones, of the same trials.

    `covered`: shares of paired and unpaired intervals that contain the true change.
    """

    ratio: float
    covered: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Contests:
    boards: Sequence[Boards]
    intervals: Intervals


def measure_contests(extent: Extent, seed: int) -> Contests:
    rng = np.random.default_rng([seed, 78])
    return Contests(
        boards=[_measure_boards(rng, extent.boards, *each) for each in BOARDS],
        intervals=_measure_intervals(rng, extent.boards),
    )


def simulate_ranking(
    rng: np.random.Generator, servers: int, blocks: int, noise: float, *, faster: float = 0.0
) -> tuple[Ranking, list[int]]:
    """Return the ranking of a board after one run, and its servers in this order.

    Server 0 is faster by this share; the others are identical.
    """
    levels = np.zeros(servers)
    levels[0] = np.log1p(faster)
    entries, means = simulate_run(rng, levels, blocks, noise, run=0)
    order = np.argsort(-means).tolist()
    unknown: list[MeanEstimate | None] = [None] * servers
    return compute_ranking(unknown, [entries[at] for at in order], falling=True), order


def simulate_run(
    rng: np.random.Generator,
    levels: NDArray[np.float64],
    blocks: int,
    noise: float,
    *,
    run: int,
) -> tuple[list[ContestEntry], NDArray[np.float64]]:
    """Return the entries of a run in the planned order, and the mean log of each server."""
    servers = len(levels)
    slots = order_trials(servers, 1, blocks, int(rng.integers(2**40)), contests=[range(servers)])
    state = np.cumsum(rng.normal(0, DRIFT, len(slots)))
    logs = state + rng.normal(0, noise, len(slots)) + levels[[slot.case for slot in slots]]
    trials: list[dict[int, ContestTrial]] = [{} for _ in range(servers)]
    for place, (slot, log) in enumerate(zip(slots, logs.tolist(), strict=True), start=1):
        block = run * blocks + slot.round
        trials[slot.case][block] = ContestTrial(float(np.exp(log)), place, 0)
    means = np.array([np.mean([np.log(each.value) for each in one.values()]) for one in trials])
    return [ContestEntry(key=0, trials=each) for each in trials], means


def _measure_boards(rng: np.random.Generator, number: int, noise: float, blocks: int) -> Boards:
    one_group = first = wrong = 0
    pairs = 0.0
    for _ in range(number):
        same, _ = simulate_ranking(rng, SERVERS, blocks, noise)
        one_group += set(same.groups) == {"a"}
        ranking, order = simulate_ranking(rng, SERVERS, blocks, noise, faster=FASTER)
        at = order.index(0)
        others = [each for server, each in zip(order, ranking.intervals, strict=True) if server]
        first += ranking.intervals[at] == (1, 1)
        pairs += (SERVERS - ranking.intervals[at].worst) / (SERVERS - 1)
        # The others share the ranks from 2 on.
        wrong += ranking.intervals[at].best > 1 or any(
            each.best > 2 or each.worst < SERVERS for each in others
        )
    return Boards(
        noise=noise,
        blocks=blocks,
        one_group=one_group / number,
        first=first / number,
        pairs=pairs / number,
        wrong=wrong / number,
    )


def _measure_intervals(rng: np.random.Generator, number: int) -> Intervals:
    levels = np.array([0.0, np.log1p(FASTER)])
    # Board, kind of interval, bound.
    bounds = np.array([_compare_twice(rng, levels) for _ in range(number)])
    shares = ((bounds[:, :, 0] <= FASTER) & (bounds[:, :, 1] >= FASTER)).mean(axis=0).tolist()
    paired, unpaired = (bounds[:, :, 1] - bounds[:, :, 0]).mean(axis=0).tolist()
    return Intervals(ratio=paired / unpaired, covered=(shares[0], shares[1]))


def _compare_twice(
    rng: np.random.Generator, levels: NDArray[np.float64]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the paired and the unpaired interval of the change of the same trials.

    The state of the machine differs between runs, for both servers alike.
    """
    trials: tuple[dict[int, ContestTrial], ...] = ({}, {})
    runs: tuple[list[list[float]], ...] = ([], [])
    for run in range(RUNS):
        state = rng.normal(0, RUN_NOISE)
        entries, _ = simulate_run(rng, levels + state, ROUNDS, TRIAL_NOISE, run=run)
        for entry, all_trials, values in zip(entries, trials, runs, strict=True):
            all_trials.update(entry.trials)
            values.append([each.value for each in entry.trials.values()])
    base, entry = (ContestEntry(key=0, trials=each) for each in trials)
    before, after = estimate(runs[0], "mean"), estimate(runs[1], "mean")
    assert before is not None
    assert after is not None
    unpaired = change_against(after.value, runs[1], before.value, runs[0], are_means=True)
    paired = change_in_contest(entry, base, 0.0, are_means=True)
    return _get_bounds(paired), _get_bounds(unpaired)


def _get_bounds(one: Estimate | None) -> tuple[float, float]:
    assert one is not None
    assert one.low is not None
    assert one.high is not None
    return one.low, one.high


def get_measured(data: Contests) -> dict[str, float]:
    """Return the measured values with the keys of WANTED."""
    after_15 = next(each for each in data.boards if each.blocks == 15)
    return {
        "contests_of_46_identical_servers_in_one_group": min(
            each.one_group for each in data.boards
        ),
        "contests_that_rank_a_server_wrongly": mean(each.wrong for each in data.boards),
        "contests_that_rank_a_server_5_percent_faster_first_after_15_blocks": after_15.first,
        "paired_interval_to_the_unpaired_one": data.intervals.ratio,
        "paired_intervals_that_contain_the_change": data.intervals.covered[0],
    }


def list_details(data: Contests) -> dict[str, Any]:
    return {
        "boards": [asdict(each) for each in data.boards],
        "intervals": asdict(data.intervals),
    }


def format_text(data: Contests) -> str:
    """Return the tables for people."""
    rows = [
        (
            f"noise {each.noise:.0%}, {each.blocks} blocks",
            *(f"{share:.1%}" for share in (each.one_group, each.first, each.pairs, each.wrong)),
        )
        for each in data.boards
    ]
    head = (
        f"Contests of {SERVERS} servers",
        "identical: one group",
        f"one {FASTER:.0%} faster: surely first",
        "its pairs proven",
        "a wrong claim",
    )
    intervals = data.intervals
    return (
        f"{render_table(head, rows)}\n\nOf {RUNS} runs of {ROUNDS} rounds, the paired interval of "
        f"a change has {intervals.ratio:.2f} of the width of the unpaired one. They contain the "
        f"change in {intervals.covered[0]:.1%} and {intervals.covered[1]:.1%}."
    )
