"""The order of trials: balanced blocks that a seed repeats."""

from collections import Counter, defaultdict
from itertools import combinations, groupby, pairwise

import pytest

from orchestrator.runs.trial_order import Slot, order_trials

VARIANTS = [1, 2, 3, 4, 5, 6, 7]


def list_blocks(slots: list[Slot]) -> dict[int, list[list[int]]]:
    """Case → the order of its variants in each round."""
    blocks: dict[tuple[int, int], list[int]] = defaultdict(list)
    for slot in slots:
        blocks[slot.case, slot.round].append(slot.variant)
    cases: dict[int, list[list[int]]] = defaultdict(list)
    for (case, _), block in sorted(blocks.items()):
        cases[case].append(block)
    return cases


@pytest.mark.parametrize("variants", VARIANTS)
def test_each_round_has_one_block_of_each_case(variants: int) -> None:
    slots = order_trials(3, variants, 4, 7)
    assert len(slots) == 3 * variants * 4
    blocks = [slots[at : at + variants] for at in range(0, len(slots), variants)]
    assert all(len({(slot.round, slot.case) for slot in block}) == 1 for block in blocks)
    assert all(sorted(slot.variant for slot in block) == [*range(variants)] for block in blocks)
    rounds = [blocks[at : at + 3] for at in range(0, len(blocks), 3)]
    assert all({block[0].case for block in each} == {0, 1, 2} for each in rounds)
    assert [each[0][0].round for each in rounds] == [1, 2, 3, 4]


@pytest.mark.parametrize("variants", VARIANTS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_second_round_mirrors_the_one_before(variants: int, seed: int) -> None:
    for blocks in list_blocks(order_trials(4, variants, 20, seed)).values():
        for first, second in zip(blocks[::2], blocks[1::2], strict=True):
            assert second == first[::-1]


@pytest.mark.parametrize("variants", [2, 3, 4, 5, 6, 7])
def test_a_whole_design_balances_places_and_neighbours(variants: int) -> None:
    """Williams 1949: each variant has each place, and follows each other one, equally often."""
    rounds = variants if variants % 2 == 0 else 2 * variants
    for blocks in list_blocks(order_trials(3, variants, 2 * rounds, 5)).values():
        for design in (blocks[:rounds], blocks[rounds:]):
            places = Counter((at, each) for block in design for at, each in enumerate(block))
            assert set(places.values()) == {rounds // variants}
            neighbours = Counter(pair for block in design for pair in pairwise(block))
            assert set(neighbours.values()) == {rounds // variants}
            assert len(neighbours) == variants * (variants - 1)


@pytest.mark.parametrize("variants", [2, 3, 4])
@pytest.mark.parametrize("rounds", [5, 7, 10, 15, 20])
def test_at_each_interim_analysis_the_orders_of_two_variants_are_balanced(
    variants: int, rounds: int
) -> None:
    for seed in range(20):
        for blocks in list_blocks(order_trials(5, variants, rounds, seed)).values():
            for one, other in combinations(range(variants), 2):
                first = sum(block.index(one) < block.index(other) for block in blocks)
                assert abs(2 * first - rounds) <= 1


def test_the_seed_determines_the_order() -> None:
    assert order_trials(3, 2, 5, 7) == order_trials(3, 2, 5, 7)
    assert order_trials(3, 2, 5, 7) != order_trials(3, 2, 5, 8)


@pytest.mark.parametrize("variants", [2, 3, 4])
def test_more_rounds_keep_the_earlier_ones(variants: int) -> None:
    short = order_trials(5, variants, 5, 7)
    assert order_trials(5, variants, 20, 7)[: len(short)] == short


def test_the_first_trial_is_random() -> None:
    firsts = Counter(order_trials(1, 2, 1, seed)[0].variant for seed in range(400))
    assert 150 < firsts[0] < 250
    cases = Counter(order_trials(4, 2, 1, seed)[0].case for seed in range(400))
    assert min(cases.values()) > 60


@pytest.mark.parametrize("variants", [1, 2, 3])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_cases_of_a_contest_are_adjacent_in_balanced_order(variants: int, seed: int) -> None:
    contests = [[0, 3, 4, 1], [2], [5, 6]]
    slots = order_trials(7, variants, 8, seed, contests=contests)
    rounds: dict[int, list[int]] = defaultdict(list)
    for slot in slots:
        rounds[slot.round].append(slot.case)
    for cases in rounds.values():
        assert sorted(cases) == sorted([*range(7)] * variants)
    orders: dict[int, list[list[int]]] = defaultdict(list)
    for cases in rounds.values():
        blocks = [case for case, _ in groupby(cases)]
        assert len(blocks) == 7, "the variants of a case are not adjacent"
        for number, contest in enumerate(contests):
            begin = min(map(blocks.index, contest))
            assert set(blocks[begin : begin + len(contest)]) == set(contest)
            orders[number].append(blocks[begin : begin + len(contest)])
    for contest_orders in orders.values():
        for first, second in zip(contest_orders[::2], contest_orders[1::2], strict=True):
            assert second == first[::-1]
    for blocks in list_blocks(slots).values():
        for one, other in combinations(range(variants), 2):
            assert sum(block.index(one) < block.index(other) for block in blocks) == 4


def test_more_rounds_keep_the_earlier_ones_of_a_contest() -> None:
    contests = [[0, 1, 2], [3, 4]]
    short = order_trials(5, 2, 5, 7, contests=contests)
    assert order_trials(5, 2, 20, 7, contests=contests)[: len(short)] == short
