"""Between two rounds a job analyses its cases; decided cases need no more rounds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.clock import utc_now
from orchestrator.dispatch.interim import analyse_cases
from orchestrator.dispatch.outcomes import derive_outcome
from orchestrator.fleet.models import Host
from orchestrator.results.models import HostBuildNoise, Series
from orchestrator.runs import budgets, claims
from orchestrator.runs.case_status import load_case_statuses
from orchestrator.runs.models import InterimAnalysis, Job, Trial
from orchestrator.runs.selectors import load_progress
from tests.dispatch.support import leased
from tests.support.factories import DEFINITION, MIXED_LOOPS, Personas, record_trial

SOURCE = DEFINITION.replace("connections: [4]", "connections: [1, 2, 3]")
#: In each round something else, so that nothing is known exactly; within ±0.3 %.
WOBBLE = (0.0, 2.0, -1.0, 3.0, -2.0, 1.0, -3.0)
#: The same for a case that cannot be decided: within ±6 %.
NOISE = 20.0
#: With this one a run has enough blocks.
LESS_NOISE = 12.0


@pytest.fixture
def job(personas: Personas, tmp_path: Path) -> Job:
    """Three cases and two commits, until they are decided."""
    return leased(personas, tmp_path, SOURCE, rounds=20, until="decided")


def measure(
    job: Job,
    *rounds: int,
    change: Mapping[int, float] | None = None,
    noise: Mapping[int, float] | None = None,
    order_effect: float = 0.0,
    **more: Any,
) -> None:
    """Fills rounds in; `change` and `noise` are by the connections of the cases.

    `order_effect`: the change of the second trial of each block.
    """
    now = utc_now()
    for trial in job.trials.filter(round__in=rounds, state="planned").select_related("case"):
        connections = trial.case.parameters["connections"]
        position = trial.variant.position
        shift = 1 + (change or {}).get(connections, 0.0) * (position == 1)
        wobble = WOBBLE[(trial.round * (1 + position) + connections) % len(WOBBLE)]
        rate = 1000 * shift * (1 + 0.001 * wobble * (noise or {}).get(connections, 1.0))
        rate *= 1 + order_effect * (trial.position % 2)
        trial.host = trial.job.host
        values = {
            "state": "measured",
            "validity": "valid",
            "host": trial.job.host,
            "started_at": now,
            "ended_at": now,
            **more,
        }
        job.trials.filter(pk=trial.pk).update(**values)
        readings = {
            "requests.rate": rate,
            "latency.p50": 4 / rate,
            "cpu.seconds_per_1k": 900 / rate,
        }
        record_trial(trial, readings, validity=values["validity"])


def states(job: Job, connections: int) -> set[str]:
    trials = job.trials.filter(case__parameters__connections=connections)
    return set(trials.values_list("state", flat=True))


def lines(job: Job) -> dict[int, str]:
    return {each.case.parameters["connections"]: each.text for each in load_case_statuses(job.run)}


def test_an_order_effect_neither_causes_nor_delays_a_verdict(job: Job) -> None:
    measure(job, 1, 2, 3, 4, 5, order_effect=-0.05)
    analyse_cases(job)
    analyses = list(InterimAnalysis.objects.all())
    assert len(analyses) == 3
    assert {(each.blocks, each.verdict, each.decided) for each in analyses} == {
        (5, "equivalent", True)
    }


def test_decided_cases_end_and_the_others_continue(job: Job) -> None:
    measure(job, 1, 2, 3, 4, change={1: -0.2}, noise={3: LESS_NOISE})
    analyse_cases(job)
    assert not InterimAnalysis.objects.exists()
    measure(job, 5, change={1: -0.2}, noise={3: LESS_NOISE})
    analyse_cases(job)
    assert states(job, 1) == states(job, 2) == {"measured", "not needed"}
    assert states(job, 3) == {"measured", "planned"}
    assert lines(job)[1].startswith("decided after 5 blocks: regressed: ")
    assert lines(job)[2] == "decided after 5 blocks: no change"
    assert lines(job)[3].startswith("after 5 blocks: not decided: ")
    assert "may stay open, even with 100 more blocks" in lines(job)[3]
    left = job.trials.filter(state="not needed", case__parameters__connections=2)
    assert {trial.message for trial in left} == {"decided after 5 blocks: no change"}


def test_each_case_is_decided_by_the_metrics_of_its_own_loop(
    personas: Personas, tmp_path: Path
) -> None:
    job = leased(personas, tmp_path, MIXED_LOOPS, rounds=20, until="decided")
    for trial in job.trials.filter(round__lte=5).select_related("case", "variant"):
        _measure_latencies(job, trial)
    analyse_cases(job)
    analyses = {
        each.case.parameters["loop"]: (each.message, len(each.p_values))
        for each in InterimAnalysis.objects.select_related("case")
    }
    assert analyses == {
        "closed": ("no change", 3),
        "open": ("regressed: latency p99 +50.0 %", 3),
    }


def _measure_latencies(job: Job, trial: Trial) -> None:
    """Record a trial: only p99 is slower, by a half."""
    wobble = 1 + 0.001 * WOBBLE[trial.round]
    trial.host = job.host
    job.trials.filter(pk=trial.pk).update(state="measured", validity="valid", host=job.host)
    readings = {
        "requests.rate": 100 * wobble,
        "latency.p50": 0.004 * wobble,
        "latency.p99": 0.012 * wobble * (1 + 0.5 * trial.variant.position),
        "cpu.seconds_per_1k": 0.9 * wobble,
    }
    record_trial(trial, readings)


def test_a_script_with_metrics_of_its_own_is_decided_by_them(
    personas: Personas, tmp_path: Path
) -> None:
    job = leased(personas, tmp_path, DEFINITION, rounds=20, until="decided")
    for trial in job.trials.filter(round__lte=5).select_related("variant"):
        trial.host = job.host
        job.trials.filter(pk=trial.pk).update(state="measured", validity="valid", host=job.host)
        value = (1 + 0.001 * WOBBLE[trial.round]) * (1 + trial.variant.position)
        record_trial(trial, {"script.parse_s": value})
    analyse_cases(job)
    assert InterimAnalysis.objects.get().message == "regressed: script: parse +100.0 %"


def test_interim_analyses_are_made_once_at_their_planned_blocks(job: Job) -> None:
    noise = {1: NOISE, 2: NOISE, 3: NOISE}
    for number in range(1, 9):
        measure(job, number, noise=noise)
        analyse_cases(job)
        analyse_cases(job)
    assert sorted(set(InterimAnalysis.objects.values_list("blocks", flat=True))) == [5, 7]
    assert InterimAnalysis.objects.count() == 6


def test_excluded_blocks_are_not_counted(job: Job) -> None:
    measure(job, 1, 2, 3, 4)
    measure(job, 5, validity="invalid")
    analyse_cases(job)
    assert not InterimAnalysis.objects.exists()
    measure(job, 6)
    analyse_cases(job)
    assert set(InterimAnalysis.objects.values_list("blocks", "excluded", "decided")) == {
        (5, 1, True)
    }


def test_equivalence_is_not_decided_if_one_side_loses_more_blocks(job: Job) -> None:
    measure(job, *range(1, 21))
    lost = job.trials.filter(round__in=range(1, 7))
    lost.filter(case__parameters__connections=1, variant__position=1).update(validity="invalid")
    lost.filter(case__parameters__connections=2).update(validity="invalid")
    analyse_cases(job)
    assert lines(job)[1].startswith("after 14 blocks: not decided")
    assert "one side lost more blocks than the other" in lines(job)[1]
    assert "no change" in lines(job)[2]


def test_an_unfinished_block_is_neither_counted_nor_excluded(job: Job) -> None:
    measure(job, 1, 2, 3, 4, 5)
    job.trials.filter(round=5, variant__position=1).update(state="planned", validity="")
    analyse_cases(job)
    assert not InterimAnalysis.objects.exists()


def test_a_block_of_two_hosts_is_excluded(job: Job) -> None:
    measure(job, 1, 2, 3, 4, 5)
    other = Host.objects.get(name="two")
    job.trials.filter(round=5, variant__position=1).update(host=other)
    analyse_cases(job)
    assert not InterimAnalysis.objects.exists()
    measure(job, 6)
    analyse_cases(job)
    assert set(InterimAnalysis.objects.values_list("blocks", "excluded")) == {(5, 1)}


def test_a_run_of_fixed_rounds_has_no_interim_analysis(personas: Personas, tmp_path: Path) -> None:
    job = leased(personas, tmp_path, SOURCE, rounds=7)
    measure(job, 1, 2, 3, 4, 5, change={1: -0.2})
    analyse_cases(job)
    assert not InterimAnalysis.objects.exists()
    assert states(job, 1) == {"measured", "planned"}


def test_a_case_is_decided_once_every_contender_is_decided(
    personas: Personas, tmp_path: Path
) -> None:
    job = leased(personas, tmp_path, SOURCE, rounds=7, commits=3, until="decided")
    measure(job, 1, 2, 3, 4, 5, change={1: -0.2})
    # The second contender is too noisy in one case.
    for trial in job.trials.filter(variant__position=2, case__parameters__connections=2):
        if trial.state == "measured" and trial.round % 2:
            job.trials.filter(pk=trial.pk).update(validity="invalid")
    analyse_cases(job)
    assert states(job, 1) == {"measured", "not needed"}
    assert states(job, 2) == {"measured", "planned"}
    sha = job.run.variants.get(position=1).commit.short_sha
    assert lines(job)[1].endswith(f"% at {sha}")


def test_screening_stops_cases_without_a_sign_of_a_change(
    personas: Personas, tmp_path: Path
) -> None:
    job = leased(personas, tmp_path, SOURCE, rounds=20, until="screened")
    noise = {1: NOISE, 2: NOISE, 3: 10}
    change = {3: -0.04}
    for number in range(1, 8):
        measure(job, number, noise=noise, change=change)
        analyse_cases(job)
    assert lines(job)[1] == "stopped early after 7 blocks: no sign of a change"
    assert states(job, 1) == states(job, 2) == {"measured", "not needed"}
    analyses = InterimAnalysis.objects.filter(case__parameters__connections=3)
    assert not any(analysis.futile for analysis in analyses)


def test_the_last_interim_analysis_is_made_when_no_round_is_left(job: Job) -> None:
    noise = {1: LESS_NOISE, 2: LESS_NOISE, 3: LESS_NOISE}
    measure(job, *range(1, 9), noise=noise)
    analyse_cases(job)
    claims.skip_remaining(job, budgets.SPENT)
    analyse_cases(job)
    assert set(InterimAnalysis.objects.values_list("blocks", flat=True)) == {8}
    assert all("needs about" in line for line in lines(job).values())


def test_noise_too_high_for_any_run_is_reported(job: Job) -> None:
    measure(job, 1, 2, 3, 4, 5, noise={3: 100.0})
    analyse_cases(job)
    assert lines(job)[3].endswith(
        "it may stay open, even with 100 more blocks: use a quieter host or a longer load"
    )


def test_the_outcome_reports_decided_cases_and_the_blocks_still_needed(job: Job) -> None:
    measure(job, 1, 2, 3, 4, 5, change={1: -0.2}, noise={3: NOISE})
    analyse_cases(job)
    measure(job, *range(6, 21), noise={3: NOISE})
    analyse_cases(job)
    state, message = derive_outcome(job)
    assert state == "finished"
    first, second = message.splitlines()
    assert first == "decided: 2 of 3 cases after 5 blocks"
    assert second.startswith("not decided: connections 3: after 20 blocks; needs about ")


def test_remaining_rounds_are_a_range(job: Job) -> None:
    before = load_progress(job.run).left
    assert before is not None
    assert before.least == pytest.approx(before.most * 5 / 20)
    assert before.typical == pytest.approx(before.most * 10 / 20)
    measure(job, 1, 2, 3, 4, 5, change={1: -0.2}, noise={3: NOISE})
    analyse_cases(job)
    now = load_progress(job.run)
    assert now.left is not None
    # One case is left, with fifteen rounds at most, two of them until its next analysis.
    assert now.left.most == pytest.approx(before.most / 3 * 15 / 20)
    assert now.left.least == pytest.approx(before.most / 3 * 2 / 20)
    assert now.trials_not_needed == 2 * 2 * 15
    assert now.trials_done == 2 * 3 * 5 + 2 * 2 * 15


def test_skipped_rounds_stay_skipped_when_the_job_is_retried(job: Job) -> None:
    measure(job, 1, 2, 3, 4, 5, noise={3: NOISE})
    analyse_cases(job)
    claims.requeue_job(job, "the host went away", wait_s=0)
    job.refresh_from_db()
    assert states(job, 1) == {"measured", "not needed"}
    assert states(job, 3) == {"measured", "planned"}
    assert InterimAnalysis.objects.filter(decided=True).count() == 2


BUILT = SOURCE.replace("subject:\n", "subject:\n  build: [[make]]\n")


def test_the_noise_between_builds_delays_a_verdict(personas: Personas, tmp_path: Path) -> None:
    """It is as in the final comparison: otherwise a case would end without a verdict."""
    job = leased(personas, tmp_path, BUILT, rounds=20, until="decided")
    measure(job, 1, 2, 3, 4, 5)
    for series in Series.objects.filter(case__parameters__connections=2):
        HostBuildNoise.objects.create(
            run=job.run, series=series, epoch=0, builds=5, sigma=0.02, low=0, high=0.1, degrees=4
        )
    analyse_cases(job)
    decided = dict(InterimAnalysis.objects.values_list("case__parameters__connections", "decided"))
    assert decided == {1: True, 2: False, 3: True}


def test_builds_that_differ_delay_a_verdict(personas: Personas, tmp_path: Path) -> None:
    job = leased(personas, tmp_path, BUILT, rounds=20, until="decided", builds=3)
    # Rounds 3 and 4 measure the second build of both commits.
    measure(job, 1, 2, 5)
    measure(job, 3, 4, change={2: -0.05})
    analyse_cases(job)
    decided = dict(InterimAnalysis.objects.values_list("case__parameters__connections", "decided"))
    assert decided == {1: True, 2: False, 3: True}
