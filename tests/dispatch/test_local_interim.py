"""A local run without a server has interim analyses: decided cases take no more rounds."""

from pathlib import Path

import pytest

from orchestrator.core.errors import InvalidRequestError
from orchestrator.dispatch.here.deciding import InterimAnalyses
from orchestrator.dispatch.here.reading import MeasuredTrial
from orchestrator.dispatch.here.rows import LocalRequest, LocalRows, build_rows
from orchestrator.runs.models import Trial
from tests.support.factories import DEFINITION

SOURCE = DEFINITION.replace("connections: [4]", "connections: [1, 2]")
#: By the round; from trial to trial it never repeats, so that nothing is known exactly.
WOBBLE = (0.0, 2.0, -1.0, 3.0, -2.0, 1.0, -3.0)


def build_local_rows(
    until: str = "decided", rounds: int | None = None, shas: str = "ab"
) -> LocalRows:
    return build_rows(
        LocalRequest(
            source=SOURCE,
            repository=Path("/nowhere"),
            shas=tuple(each * 40 for each in shas),
            until=until,
            rounds=rounds,
        )
    )


def carried_out(
    rows: LocalRows, analyses: InterimAnalyses, *, change: float = 0.0, invalid: int = 0
) -> list[int]:
    """How many rounds each case took: the first changes so, the second one is full of noise.

    `invalid`: a round that does not count.
    """
    trials: dict[str, MeasuredTrial] = {}
    taken = {1: 0, 2: 0}
    for number in range(1, rows.rounds + 1):
        going_on = analyses.open_cases()
        for trial in (each for each in rows.trials if each.round == number):
            if trial.case_id in going_on:
                trials[str(trial.pk)] = measured(trial, change, invalid=number == invalid)
                taken[trial.case_id] = number
        analyses.analyse(trials, number)
    return list(taken.values())


def measured(trial: Trial, change: float, *, invalid: bool) -> MeasuredTrial:
    noise = 0.001 if trial.case_id == 1 else 0.04
    position = trial.variant.position
    wobble = 1 + noise * WOBBLE[(trial.round * (1 + position) + trial.case_id) % len(WOBBLE)]
    rate = 1000 * wobble * (1 + change * position * (trial.case_id == 1))
    readings = {
        "requests.rate": rate, "latency.p50": 4 / rate, "cpu.seconds_per_1k": 900 / rate
    }  # fmt: skip
    return MeasuredTrial(readings=readings, invalid=invalid)


def build_analyses(rows: LocalRows) -> InterimAnalyses:
    return InterimAnalyses(rows, rows.cases)


def test_decided_cases_end_and_the_others_continue() -> None:
    wanted = build_local_rows()
    analyses = build_analyses(wanted)
    assert carried_out(wanted, analyses, change=-0.2) == [5, 20]
    first, second = analyses.lines()
    assert first.startswith("connections 1, after 5 blocks: regressed: ")
    assert second.startswith("connections 2, after 20 blocks: not decided")


def test_equivalence_is_decided_and_an_excluded_round_is_repeated() -> None:
    wanted = build_local_rows()
    analyses = build_analyses(wanted)
    assert carried_out(wanted, analyses, invalid=2)[0] == 6
    assert analyses.lines()[0] == "connections 1, after 5 blocks: no change"


def test_a_case_without_a_sign_of_a_change_is_stopped_early() -> None:
    wanted = build_local_rows("screened")
    analyses = build_analyses(wanted)
    assert carried_out(wanted, analyses) == [5, 7]
    assert analyses.lines()[1] == (
        "connections 2, after 7 blocks: stopped early: no sign of a change"
    )


def test_a_fixed_number_of_rounds_has_no_interim_analysis() -> None:
    wanted = build_local_rows("rounds", 6)
    analyses = build_analyses(wanted)
    assert carried_out(wanted, analyses, change=-0.2) == [6, 6]
    assert analyses.lines() == []


@pytest.mark.parametrize(
    ("until", "rounds", "shas", "message"),
    [
        ("decided", 21, "ab", "at most 20"),
        ("decided", None, "a", "nothing to decide"),
        ("rounds", 0, "ab", "1 to 100 rounds"),
    ],
)
def test_undecidable_cases_are_reported(
    until: str, rounds: int | None, shas: str, message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        build_local_rows(until, rounds, shas)
