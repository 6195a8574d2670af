"""The summary of the simulated runs, and their targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from statistics import fmean
from typing import Any

from perf.detection.alternatives import ALTERNATIVES
from perf.detection.run_rates import ClaimRates, RunRates, Scenario, measure_rates
from perf.detection.run_scenarios import CHANGED, UNCHANGED
from perf.harness.report import Requirement, render_table

#: Runs a day, for the number of false claims that a team would see.
RUNS_A_DAY = 40
#: Larger runs are slower, and give as many claims from fewer runs.
_LARGE, _SHARE_OF_LARGE = 20, 0.25

#: Up to this noise, any interim analysis can call a change of just the margin unimportant, equally
#: often. The mean of these scenarios has less chance in it than the largest.
_SMALL_NOISE = 0.02

_AT_MOST_5 = Requirement(relation="<=", limit=0.05)
WANTED: dict[str, Requirement | None] = {
    "runs_without_a_change_that_claim_one": _AT_MOST_5,
    "runs_of_20_cases_without_a_change_that_are_headlined_as_changed": _AT_MOST_5,
    "runs_of_60_metrics_that_name_a_change_without_one": _AT_MOST_5,
    "runs_without_a_change_that_label_one_for_information": _AT_MOST_5,
    "runs_with_other_builds_that_claim_a_change": _AT_MOST_5,
    "sides_of_separate_runs_that_claim_a_change": _AT_MOST_5,
    "runs_that_call_the_margin_unimportant": _AT_MOST_5,
    "runs_with_a_changed_case_that_claim_another": None,
    "intervals_that_contain_the_change": Requirement(relation=">=", limit=0.93),
    "intervals_of_claims_that_contain_the_change": None,
    "exaggeration_of_claims": None,
    "exaggeration_of_headlines": None,
    "cases_found_with_5_percent_at_2_percent_noise": Requirement(relation=">=", limit=0.95),
    "cases_found_with_5_percent_at_4_percent_noise": None,
    "runs_without_a_change_that_t_tests_claim": None,
    "runs_without_a_change_that_pinpoint_claims": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    group: str
    scenario: Scenario
    rates: RunRates


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeasurements:
    unchanged: Sequence[ScenarioResult]
    changed: Sequence[ScenarioResult]


def measure_runs(number: int, seed: int) -> RunMeasurements:
    """Return the rates of `number` runs of each scenario without a change, and half of the rest."""
    return RunMeasurements(
        unchanged=_measure_groups(UNCHANGED, number, seed),
        changed=_measure_groups(CHANGED, max(1, number // 2), seed),
    )


def _measure_groups(
    groups: Mapping[str, Sequence[Scenario]], number: int, seed: int
) -> list[ScenarioResult]:
    return [
        ScenarioResult(
            group=group,
            scenario=scenario,
            rates=measure_rates(scenario, _count_runs(scenario, number), seed),
        )
        for group, scenarios in groups.items()
        for scenario in scenarios
    ]


def _count_runs(scenario: Scenario, number: int) -> int:
    share = _SHARE_OF_LARGE if scenario.cases > _LARGE else scenario.weight
    return max(1, round(number * share))


def get_measured(data: RunMeasurements) -> dict[str, float]:
    """Return the measured values with the keys of WANTED."""
    known = [each for each in data.unchanged if each.group not in ("builds", "runs")]
    large = [each for each in known if each.scenario.cases == _LARGE]
    usual = [each for each in large if each.scenario.metrics == "3"]
    several = [each for each in data.changed if each.group == "five of 20"]
    of_margin = [each for each in data.changed if each.group == "margin"]
    return {
        "runs_without_a_change_that_claim_one": _find_max_false(known),
        "runs_of_20_cases_without_a_change_that_are_headlined_as_changed": max(
            each.rates.headlined for each in large
        ),
        "runs_of_60_metrics_that_name_a_change_without_one": max(
            each.rates.named for each in usual
        ),
        "runs_without_a_change_that_label_one_for_information": max(
            each.rates.labelled for each in known
        ),
        "runs_with_other_builds_that_claim_a_change": _find_max_false(data.unchanged, "builds"),
        "sides_of_separate_runs_that_claim_a_change": _find_max_false(data.unchanged, "runs"),
        "runs_that_call_the_margin_unimportant": fmean(
            each.rates.unimportant or 0.0
            for each in of_margin
            if each.scenario.variation.noise <= _SMALL_NOISE
        ),
        "runs_with_a_changed_case_that_claim_another": _find_max_false(data.changed),
        "intervals_that_contain_the_change": _find_smallest(
            each.rates.covered for each in chain(known, data.changed)
        ),
        "intervals_of_claims_that_contain_the_change": _find_smallest(
            each.rates.covered_claims for each in several
        ),
        "exaggeration_of_claims": _find_largest(each.rates.claims.exaggeration for each in several),
        "exaggeration_of_headlines": _find_largest(
            each.rates.headline_exaggeration for each in several
        ),
        "cases_found_with_5_percent_at_2_percent_noise": _find_power(data, 0.02),
        "cases_found_with_5_percent_at_4_percent_noise": _find_power(data, 0.04),
        "runs_without_a_change_that_t_tests_claim": _find_max_alternative(usual, "t-tests"),
        "runs_without_a_change_that_pinpoint_claims": _find_max_alternative(usual, "as Pinpoint"),
    }


def _find_max_false(results: Iterable[ScenarioResult], group: str = "") -> float:
    return max(each.rates.claims.false_claims for each in results if group in ("", each.group))


def _find_max_alternative(results: Iterable[ScenarioResult], name: str) -> float:
    return max(
        each.rates.alternatives[name].false_claims for each in results if each.rates.alternatives
    )


def _find_largest(shares: Iterable[float | None]) -> float:
    """Return the largest of the known shares; 0 if a short benchmark knows none."""
    return max((each for each in shares if each is not None), default=0.0)


def _find_smallest(shares: Iterable[float | None]) -> float:
    return min((each for each in shares if each is not None), default=0.0)


def _find_power(data: RunMeasurements, noise: float) -> float:
    """Return the share of found cases, with a change of 5 % in one of 20 cases."""
    return next(
        each.rates.claims.found or 0.0
        for each in data.changed
        if each.group == "one of 20"
        and (each.scenario.change.size, each.scenario.variation.noise) == (0.05, noise)
    )


def list_details(data: RunMeasurements) -> dict[str, Any]:
    """Return the underlying values, for the file of results."""
    return {
        kind: [
            {"group": each.group, **asdict(each.scenario), **_round(asdict(each.rates))}
            for each in results
        ]
        for kind, results in (("unchanged", data.unchanged), ("changed", data.changed))
    }


def _round(values: Mapping[str, Any]) -> dict[str, Any]:
    rounded = {key: _round(each) for key, each in values.items() if isinstance(each, dict)}
    plain = {
        key: round(each, 4) if isinstance(each, float) else each for key, each in values.items()
    }
    return {**plain, **rounded}


def format_text(data: RunMeasurements) -> str:
    """Return the tables for people."""
    return f"{_format_unchanged(data.unchanged)}\n\n{_format_changed(data.changed)}"


def _format_unchanged(results: Sequence[ScenarioResult]) -> str:
    head = (
        "Runs without a change",
        "claims one",
        f"in {RUNS_A_DAY} runs",
        "headline",
        "label",
        "open cases",
        "intervals",
        "rounds",
        *ALTERNATIVES,
        "rounds",
    )
    rows = [
        (
            _describe(each.scenario),
            f"{each.rates.claims.false_claims:.1%}",
            f"{RUNS_A_DAY * each.rates.claims.false_claims:.1f}",
            f"{each.rates.headlined:.1%}",
            f"{each.rates.labelled:.1%}",
            f"{each.rates.open_cases:.1%}",
            _format_share(each.rates.covered),
            f"{each.rates.claims.rounds:.1f}",
            *_format_alternatives(each, lambda rates: [_format_share(rates.false_claims)]),
        )
        for each in results
    ]
    return render_table(head, rows)


def _format_changed(results: Sequence[ScenarioResult]) -> str:
    head = (
        "Runs with a change",
        "found",
        "claims another",
        "unimportant",
        "size",
        "its interval",
        "headline's",
        "its interval",
        "rounds",
        *chain.from_iterable((name, "size") for name in ALTERNATIVES),
        "rounds",
    )
    rows = [
        (
            _describe(each.scenario),
            _format_share(each.rates.claims.found),
            f"{each.rates.claims.false_claims:.1%}",
            _format_share(each.rates.unimportant),
            _format_excess(each.rates.claims.exaggeration),
            _format_share(each.rates.covered_claims),
            _format_excess(each.rates.headline_exaggeration),
            _format_share(each.rates.headline_covered),
            f"{each.rates.claims.rounds:.1f}",
            *_format_alternatives(
                each,
                lambda rates: [_format_share(rates.found), _format_excess(rates.exaggeration)],
            ),
        )
        for each in results
    ]
    return render_table(head, rows)


def _describe(scenario: Scenario) -> str:
    """Return what is special about a scenario."""
    change, variation = scenario.change, scenario.variation
    parts = [_count(str(scenario.cases), "case"), _count(scenario.metrics, "metric")]
    parts.append(f"noise {variation.noise:.1%}")
    parts += [
        f"{name} {value:.1%}"
        for name, value in asdict(variation).items()
        if name != "noise" and value
    ]
    if change.cases:
        where = " in one metric" if change.first_metric_only else ""
        parts.append(f"{change.size:+.0%} in {change.cases}{where}")
    return ", ".join([*parts, scenario.ending])


def _count(number: str, noun: str) -> str:
    return f"{number} {noun}" if number == "1" else f"{number} {noun}s"


def _format_alternatives(
    result: ScenarioResult, write: Callable[[ClaimRates], list[str]]
) -> list[str]:
    """Return the cells of each alternative and the rounds of the last one, or empty cells."""
    known = list(result.rates.alternatives.values())
    if not known:
        return [""] * (len(ALTERNATIVES) * len(write(result.rates.claims)) + 1)
    cells = chain.from_iterable(write(rates) for rates in known)
    return [*cells, f"{known[-1].rounds:.1f}"]


def _format_share(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _format_excess(share: float | None) -> str:
    return "" if share is None else f"{share:+.0%}"
