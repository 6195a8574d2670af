"""Simulated runs take the same way as real ones, and their trials are what they should be."""

from uuid import uuid4

import numpy as np
import pytest
from scipy.stats import ks_2samp, mannwhitneyu

from orchestrator.comparisons.compare import judge_cases
from orchestrator.comparisons.exclusions import Exclusions
from orchestrator.comparisons.mismatches import Mismatches, Names
from orchestrator.comparisons.pairing import PairedCase
from orchestrator.comparisons.points import CaseOnHost, ComparabilityKey, PointGroup
from orchestrator.comparisons.report import CaseName
from orchestrator.comparisons.selection import Selection
from orchestrator.dispatch.case_data import CaseBlocks, ComparisonSpec, compare_case
from orchestrator.runs.trial_order import KEPT_BUILD
from orchestrator.stats.alpha_spending import Spending
from orchestrator.stats.build_variance import UNKNOWN_BUILDS
from orchestrator.stats.comparison import Verdict
from orchestrator.stats.interim import INTERIM_BLOCKS
from orchestrator.stats.order_effect import CONTENDER_SECOND
from perf.detection.alternatives import (
    ALTERNATIVES,
    PINPOINT_LOW,
    claim_as_alternatives,
    claim_as_pinpoint,
)
from perf.detection.run_rates import Scenario, measure_rates
from perf.detection.run_scenarios import CHANGED, UNCHANGED
from perf.detection.simulated_runs import _analyse_cases, judge_run
from perf.detection.simulated_trials import PlantedChange, Variation, draw_trials, list_metrics

EXACT = Variation(noise=1e-9)


def draw(seed=1, *, cases=4, kind="3", variation=None, change=None):
    return draw_trials(
        np.random.default_rng(seed),
        cases=cases,
        kind=kind,
        variation=variation or Variation(noise=0.02),
        change=change or PlantedChange(),
    )


def ratios(trials):
    return trials.values[:, :, 1] / trials.values[:, :, 0]


def test_a_planted_change_makes_each_metric_of_its_cases_worse() -> None:
    trials = draw(variation=EXACT, change=PlantedChange(size=0.05, cases=1))
    changed = np.array([1.05 if each.better == "lower" else 0.95 for each in trials.metrics])
    assert sorted(changed) == [0.95, 1.05, 1.05]
    assert ratios(trials)[0] == pytest.approx(changed[:, None].repeat(30, 1))
    assert ratios(trials)[1:] == pytest.approx(1)
    better = PlantedChange(size=-0.05, cases=4, first_metric_only=True)
    one = draw(variation=EXACT, change=better)
    assert ratios(one)[:, 0] == pytest.approx(2 - changed[0])
    assert ratios(one)[:, 1:] == pytest.approx(1)


def test_the_second_trial_of_a_block_has_the_order_effect() -> None:
    trials = draw(variation=Variation(noise=1e-9, order=0.04), kind="1")
    seconds = trials.orders == CONTENDER_SECOND
    assert (seconds.sum(axis=1) == 15).all()
    # The metric is a rate, so the slower trial has the lower value.
    assert ratios(trials)[:, 0] == pytest.approx(np.where(seconds, 1 / 1.04, 1.04))


@pytest.mark.parametrize(
    ("name", "size"), [("noise", 0.02 * np.sqrt(2)), ("builds", 0.02 * np.sqrt(2)), ("drift", 0.0)]
)
def test_each_kind_of_variation_has_its_size(name, size) -> None:
    trials = draw(cases=200, kind="1", variation=Variation(**{"noise": 1e-9, name: 0.02}))
    logs = np.log(ratios(trials))
    assert logs.std() == pytest.approx(size, rel=0.15, abs=1e-6)
    shared = bool(logs.std(axis=-1).max() < 1e-6)
    assert shared is (name != "noise")


def test_outliers_are_rare_and_make_a_trial_slower() -> None:
    trials = draw(cases=100, kind="1", variation=Variation(noise=1e-9, outliers=0.05))
    slow = trials.values < 0.95
    assert 0.03 < slow.mean() < 0.07
    assert trials.values[slow].min() > 0.6


def test_the_metrics_that_decide_come_first() -> None:
    metrics, deciding = list_metrics("3+5")
    keys = {metric.key for metric in metrics[:deciding]}
    assert keys == {"requests.rate", "latency.p50", "cpu.seconds_per_1k"}
    assert (len(metrics), deciding) == (8, 3)
    assert list_metrics("8")[1] == 8


def test_an_analysis_is_that_of_a_job() -> None:
    """`compare_case` is what a job calls between two rounds."""
    trials = draw(change=PlantedChange(size=0.05, cases=1), variation=Variation(noise=0.01))
    spec = ComparisonSpec(
        primary={case: [metric.key for metric in trials.metrics] for case in range(4)},
        contenders={1: "abc"},
    )
    for case, data in _analyse_cases(trials, {"0": 7, "3": 7}).items():
        blocks, values = CaseBlocks(clean=[], builds=[KEPT_BUILD] * 7), {}
        for number in range(7):
            ids = {side: uuid4() for side in (0, 1)}
            second = trials.orders[int(case), number] == CONTENDER_SECOND
            blocks.clean.append({side: ids[side] for side in ((0, 1) if second else (1, 0))})
            for side, trial in ids.items():
                cells = trials.values[int(case), :, side, number].tolist()
                keys = [metric.key for metric in trials.metrics]
                values[trial] = dict(zip(keys, cells, strict=True))
        job = compare_case(int(case), blocks, spec, values).data
        assert (job.blocks, job.excluded) == (data.blocks, data.excluded)
        assert [each.verdict for each in job.comparisons] == [
            each.verdict for each in data.comparisons
        ]
        assert job.p_values == pytest.approx(data.p_values)


@pytest.mark.parametrize("ending", ["rounds", "decided", "screened"])
def test_a_run_is_judged_as_on_its_page(ending) -> None:
    """`judge_cases` is what the page, the API and the command line call."""
    trials = draw(
        3, cases=6, change=PlantedChange(size=0.05, cases=2), variation=Variation(noise=0.02)
    )
    run = judge_run(trials, ending)
    judged = judge_cases(
        build_selection(trials, run.blocks),
        Mismatches(),
        (None, None),
        dict.fromkeys(run.blocks, Spending(analyses=1 if ending == "rounds" else 5)),
        {},
    )
    assert run.matrix.cases == judged.matrix.cases
    assert run.matrix.cells == judged.matrix.cells
    assert run.matrix.headline == judged.matrix.headline
    assert run.matrix.verdict is Verdict.REGRESSED


def build_selection(trials, blocks):
    names = {
        case: CaseName(pk=case, key=str(case), parameters={}, label=str(case))
        for case in range(len(blocks))
    }
    cases = []
    for case, count in blocks.items():
        values = trials.values[int(case), :, :, :count]
        group = PointGroup(CaseOnHost("host", int(case)), ComparabilityKey(1, 1), 0.0)
        keys = [metric.key for metric in trials.metrics]
        cases.append(
            PairedCase(
                baseline=(group,),
                contender=(group,),
                paired=True,
                metrics={key: tuple(values[at].tolist()) for at, key in enumerate(keys)},
                blocks=(frozenset(range(count)),) * 2,
                orders=dict.fromkeys(keys, trials.orders[int(case), :count].tolist()),
                builds=dict.fromkeys(keys, [UNKNOWN_BUILDS] * count),
            )
        )
    return Selection(
        cases=cases,
        exclusions=[Exclusions()] * len(cases),
        excluded_cases={},
        names=Names(cases=names, hosts={}),
        one_sided=0,
        version=None,
    )


def test_a_run_ends_as_its_form_says() -> None:
    sure = draw(variation=Variation(noise=0.002))
    noisy = draw(variation=Variation(noise=0.2))
    assert set(judge_run(sure, "rounds").blocks.values()) == {10}
    assert set(judge_run(sure, "decided").blocks.values()) == {INTERIM_BLOCKS[0]}
    assert set(judge_run(noisy, "decided").blocks.values()) == {INTERIM_BLOCKS[-1]}
    assert INTERIM_BLOCKS[1] in judge_run(noisy, "screened").blocks.values()
    assert judge_run(sure, "one run a side").matrix.verdict is Verdict.INCONCLUSIVE
    assert judge_run(sure, "three runs a side").matrix.verdict is Verdict.EQUIVALENT


def test_alternatives_claim_an_obvious_change_only_where_it_is() -> None:
    trials = draw(change=PlantedChange(size=0.2, cases=1), variation=Variation(noise=0.01))
    found = claim_as_alternatives(trials)
    for claims in found.values():
        assert claims.cells[0].all()
        assert claims.changes[0] == pytest.approx(trials.truth[0], abs=0.02)
        assert not claims.cells[1:].all()
    plain, beyond, _ = (found[name] for name in ALTERNATIVES)
    assert plain.rounds == beyond.rounds == 10
    small = np.abs(np.expm1(plain.changes)) < 0.03
    assert not beyond.cells[small].any()
    assert (plain.cells == beyond.cells)[~small].all()


def test_pinpoint_takes_the_smaller_p_value_and_more_trials_in_between() -> None:
    trials = draw(5, cases=30, kind="1")
    claims = claim_as_pinpoint(trials)
    assert 10 < claims.rounds < 30
    for case in range(30):
        before, after = trials.values[case, 0, :, :10]
        p_value = min(
            ks_2samp(before, after).pvalue, mannwhitneyu(before, after, method="asymptotic").pvalue
        )
        if p_value <= PINPOINT_LOW:
            assert claims.cells[case, 0]


def test_rates_count_runs_cells_and_claims() -> None:
    scenario = Scenario(
        variation=Variation(noise=0.001), cases=3, change=PlantedChange(size=0.1, cases=1)
    )
    rates = measure_rates(scenario, 5, 1)
    assert (rates.claims.found, rates.claims.false_claims, rates.claims.rounds) == (1, 0, 5)
    assert rates.claims.exaggeration == pytest.approx(0, abs=0.02)
    assert (rates.headlined, rates.named, rates.open_cases) == (1, 1, 0)
    assert rates.unimportant == 0
    again = measure_rates(scenario, 5, 1)
    assert again == rates


def test_every_scenario_differs() -> None:
    scenarios = [each for group in (UNCHANGED, CHANGED) for kind in group.values() for each in kind]
    assert len({repr(each) for each in scenarios}) == len(scenarios)
