"""How often whole runs are wrong, from their blocks to the headline, with fixed seeds."""

import pytest

from perf.detection.run_rates import Scenario, measure_rates
from perf.detection.simulated_trials import PlantedChange, Variation


@pytest.mark.parametrize("noise", [0.01, pytest.param(0.015, marks=pytest.mark.slow)])
def test_a_run_of_many_cases_without_a_change_rarely_names_one(noise: float) -> None:
    """Before trivial changes were corrected, 60 to 73 % did. Of t-tests, nearly all do."""
    rates = measure_rates(Scenario(variation=Variation(noise=noise)), 60, 94)
    assert rates.named <= 0.05
    assert rates.headlined <= 0.05
    assert rates.claims.false_claims <= 0.05
    assert rates.covered is not None
    assert rates.covered >= 0.93
    assert rates.alternatives["t-tests"].false_claims >= 0.7


@pytest.mark.parametrize(
    ("noise", "change"), [(0.015, 0.03), pytest.param(0.02, -0.03, marks=pytest.mark.slow)]
)
def test_a_change_of_the_margin_is_rarely_called_unimportant(noise: float, change: float) -> None:
    """Before small changes had to be proven, 39 % were.

    It is about the target of 5 % (docs/error-rates.md); 400 runs only show if it is far above.
    """
    scenario = Scenario(
        variation=Variation(noise=noise),
        cases=1,
        metrics="1",
        change=PlantedChange(size=change, cases=1),
    )
    rates = measure_rates(scenario, 400, 93)
    assert rates.unimportant is not None
    assert rates.unimportant <= 0.08


def test_a_regression_of_one_case_is_found_on_a_disturbed_host() -> None:
    disturbed = Variation(noise=0.01, drift=0.02, order=0.04)
    scenario = Scenario(variation=disturbed, change=PlantedChange(size=0.05, cases=1))
    rates = measure_rates(scenario, 30, 95)
    assert rates.claims.found is not None
    assert rates.claims.found >= 0.9
    assert rates.claims.false_claims <= 0.1
