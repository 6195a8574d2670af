"""What calibrations say of the noise of a host, and of what a planned run will see on it."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from orchestrator.calibration.calibrations import judge_calibration, judge_calibrations
from orchestrator.calibration.forecasts import forecast_resolution, format_forecast
from orchestrator.calibration.resolution import estimate_resolution
from orchestrator.calibration.sensitivity import (
    Sensitivity,
    list_sensitivities,
    load_calibrations,
    present_calibrations,
)
from orchestrator.core.errors import InvalidRequestError
from orchestrator.fleet.models import HostChange, HostSnapshot
from orchestrator.loadtools.metrics import METRICS
from orchestrator.results.models import Calibration, HostBuildNoise
from orchestrator.runs.calibration import NewCalibration, start_calibration
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.services import RunPlan, RunRequest, plan_run
from orchestrator.stats.noise import Noise, estimate_noise
from orchestrator.stats.power import (
    build_claim_rule,
    compute_needed_blocks,
    compute_smallest_change,
)
from tests.support.factories import (
    DEFINITION,
    MIXED_LOOPS,
    Personas,
    finish_run,
    make_definition,
    record_again,
)
from tests.support.world import World


class CalibrationWorld(World):
    """With calibrations of the host."""

    def queue(self, benchmark: str = "hello", pairs: int = 5) -> Run:
        new = NewCalibration(benchmark=benchmark, commit=self.shas[0], pairs=pairs)
        return start_calibration(member=self.personas.alice, host_id=self.host.pk, new=new)

    def measured(self, rates: Sequence[float], benchmark: str = "hello") -> Run:
        """A finished calibration, not judged yet, whose rounds had these rates in each case."""
        run = finish_run(self.queue(benchmark, len(rates) // 2), [1000])
        trials = Trial.objects.filter(job__run=run)
        record_again({each.pk: {"requests.rate": rates[each.round - 1]} for each in trials})
        return run

    def calibrate(self, rates: Sequence[float], benchmark: str = "hello") -> Calibration:
        run = self.measured(rates, benchmark)
        judge_calibrations()
        return Calibration.objects.get(run=run)

    def plan(self, **changes: Any) -> RunPlan:
        given = {"benchmark": "hello", "contenders": (self.shas[1],), "hosts": ("here",)}
        request = RunRequest(baseline=self.shas[0], **{**given, **changes})
        return plan_run(member=self.personas.alice, request=request)

    def forecast(self, **changes: Any) -> str:
        (forecast,) = forecast_resolution(self.plan(**changes))
        return forecast.text


@pytest.fixture
def world(personas: Personas, data_dir: Path, tmp_path: Path) -> CalibrationWorld:
    """With another benchmark, `other`."""
    world = CalibrationWorld.make(personas, tmp_path)
    source = DEFINITION.replace("Hello", "Other")
    make_definition(world.alice, world.project, slug="other", source=source)
    return world


def build_rates(differences: Sequence[float], base: float = 1000) -> list[float]:
    """Two rates a pair, whose ln(second / first) are these."""
    return [rate for each in differences for rate in (base, base * math.exp(each))]


NOISY = [0.02, -0.02, 0.03, -0.03, 0.0]


def _only(calibration: Calibration) -> dict[str, dict[str, float]]:
    (readings,) = calibration.readings.values()
    return readings


def test_neighbouring_rounds_form_pairs(world: CalibrationWorld) -> None:
    calibration = world.calibrate(build_rates(NOISY))
    rate = _only(calibration)["requests.rate"]
    expected = estimate_noise(NOISY)
    assert expected is not None
    assert rate["pairs"] == 5
    assert rate["sigma"] == pytest.approx(expected.sigma)
    assert (rate["low"], rate["high"]) == pytest.approx((expected.low, expected.high))
    assert rate["mean"] == pytest.approx(0, abs=1e-12)
    assert set(_only(calibration)) == {"requests.rate", "latency.p50", "cpu.seconds_per_1k"}


def test_a_calibration_records_what_it_measured(world: CalibrationWorld) -> None:
    calibration = world.calibrate(build_rates(NOISY))
    assert (calibration.host, calibration.benchmark.slug) == (world.host, "hello")
    assert (calibration.commit.sha, calibration.epoch) == (world.shas[0], 0)
    assert calibration.message == ""


def test_a_calibration_is_evaluated_once_after_it_ended(world: CalibrationWorld) -> None:
    run = world.queue()
    judge_calibrations()
    assert not Calibration.objects.exists()
    finish_run(run, [1000])
    judge_calibrations()
    judge_calibrations()
    assert judge_calibration(run) == Calibration.objects.get()


def test_other_runs_are_not_evaluated(world: CalibrationWorld) -> None:
    run = world.measured(build_rates(NOISY))
    Run.objects.update(trigger="golden")
    judge_calibrations()
    assert not Calibration.objects.filter(run=run).exists()


@pytest.mark.parametrize("change", [{"validity": "invalid"}, {"state": "failed", "validity": ""}])
def test_an_invalid_trial_excludes_its_pair(
    world: CalibrationWorld, change: dict[str, str]
) -> None:
    run = world.measured(build_rates([*NOISY, 5.0]))
    Trial.objects.filter(job__run=run, round=11).update(**change)
    judge_calibrations()
    rate = _only(Calibration.objects.get())["requests.rate"]
    assert rate["pairs"] == 5
    expected = estimate_noise(NOISY)
    assert expected is not None
    assert rate["sigma"] == pytest.approx(expected.sigma)


def test_pairs_do_not_span_a_gap(world: CalibrationWorld) -> None:
    run = world.measured(build_rates([*NOISY, 0.0]))
    # Of rounds 3 and 5 no pair is made: they are of different pairs.
    Trial.objects.filter(job__run=run, round__in=[4, 6]).update(validity="invalid")
    judge_calibrations()
    calibration = Calibration.objects.get()
    assert calibration.readings == {}
    assert calibration.message == "no case has 5 pairs whose trials are both valid"


def test_a_metric_without_a_logarithm_is_omitted(world: CalibrationWorld) -> None:
    calibration = world.calibrate([0.0] * 10)
    assert set(_only(calibration)) == {"latency.p50", "cpu.seconds_per_1k"}


def test_a_failed_run_is_reported_in_the_calibration(world: CalibrationWorld) -> None:
    world.queue()
    Run.objects.update(state="failed", message="here: the server does not start")
    judge_calibrations()
    calibration = Calibration.objects.get()
    assert calibration.readings == {}
    assert calibration.message == "the run failed: here: the server does not start"
    assert present_calibrations(world.host) == []
    assert list(load_calibrations(world.host)) == [calibration]


def test_the_database_refuses_to_change_one(world: CalibrationWorld) -> None:
    calibration = world.calibrate(build_rates(NOISY))
    with pytest.raises(IntegrityError, match="never changed once written"), transaction.atomic():
        Calibration.objects.filter(pk=calibration.pk).update(epoch=7)


def test_each_case_has_its_own_noise(world: CalibrationWorld) -> None:
    project = world.plan().definition.benchmark.project
    source = DEFINITION.replace("connections: [4]", "connections: [4, 8]")
    make_definition(world.personas.alice, project, source=source)
    sights = list_sensitivities(world.calibrate(build_rates(NOISY)))
    assert [sight.metric.key for sight in sights] == [
        *("requests.rate", "latency.p50", "cpu.seconds_per_1k"),
    ] * 2
    assert len({sight.case for sight in sights}) == 2
    assert sights[0].label != sights[-1].label


def test_the_newest_calibration_of_the_current_epoch_counts(world: CalibrationWorld) -> None:
    world.calibrate(build_rates([5 * each for each in NOISY]))
    newest = world.calibrate(build_rates(NOISY))
    other = world.calibrate(build_rates(NOISY), "other")
    assert set(present_calibrations(world.host)) == {newest, other}

    snapshot = HostSnapshot.objects.create(host=world.host, facts={}, fingerprint="new")
    HostChange.objects.create(
        host=world.host, snapshot=snapshot, changed={"kernel": ["1", "2"]}, at=snapshot.taken_at
    )
    assert present_calibrations(world.host) == []
    assert "here has changed since it was calibrated" in world.forecast()
    again = world.calibrate(build_rates(NOISY))
    assert (again.epoch, present_calibrations(world.host)) == (1, [again])


def test_a_plan_forecasts_the_smallest_change(world: CalibrationWorld) -> None:
    assert world.forecast() == "here is not calibrated yet: which changes it can detect is unknown"
    calibration = world.calibrate(build_rates(NOISY))
    noise = estimate_noise(NOISY)
    assert noise is not None
    rule = build_claim_rule(0.03, family=3)
    seen = compute_smallest_change(noise.upper, 7, rule) * 100
    text = world.forecast(rounds=7)
    assert text.startswith(f"With 7 rounds, here detects changes of about {seen:.1f} % in requests")
    assert text.endswith("in requests per second; for 6 % take 9 rounds")
    (forecast,) = forecast_resolution(world.plan(rounds=9))
    assert (forecast.calibration, forecast.host) == (calibration, world.host)
    assert "take" not in forecast.text


def test_a_forecast_from_another_benchmark_names_it(world: CalibrationWorld) -> None:
    world.calibrate(build_rates(NOISY), "other")
    assert world.forecast().endswith("(by its noise with Other: not calibrated with this one)")
    world.calibrate(build_rates(NOISY))
    assert "Other" not in world.forecast()


def test_only_calibrated_hosts_have_a_forecast(world: CalibrationWorld) -> None:
    plan = world.plan(hosts=("here", "profile:any"))
    assert [each.host for each in forecast_resolution(plan)] == [world.host]


def _sight(sigma: float, key: str = "requests.rate") -> Sensitivity:
    noise = Noise(pairs=10, sigma=sigma, low=0, high=1, mean=0, mean_low=0, mean_high=0)
    return Sensitivity(case="c", label="C", metric=METRICS[key], noise=noise, family=3)


def test_a_resolution_needs_more_rounds_if_some_are_excluded(world: CalibrationWorld) -> None:
    run = world.measured(build_rates([*NOISY, *NOISY]))
    Trial.objects.filter(job__run=run, round__gt=10, round__lte=14).update(validity="invalid")
    judge_calibrations()
    (sight, *_) = list_sensitivities(Calibration.objects.get())
    assert (sight.noise.pairs, sight.noise.excluded) == (8, 2)
    rule = build_claim_rule(0.03, family=3)
    blocks = compute_needed_blocks(sight.noise.upper, 0.05, rule)
    assert blocks is not None
    resolution = estimate_resolution(world.plan(), 0.05)
    assert resolution.rounds == math.ceil(blocks / 0.8)


def test_a_resolution_within_the_margin_is_refused(world: CalibrationWorld) -> None:
    world.calibrate(build_rates([each / 100 for each in NOISY]))
    for change in (0.02, 0.03):
        with pytest.raises(InvalidRequestError, match="is not beyond the margin") as caught:
            estimate_resolution(world.plan(), change)
        assert caught.value.field == "resolution"
        assert "above 3 %" in str(caught.value)
    assert estimate_resolution(world.plan(), 0.032).rounds == 5


BUILT = DEFINITION.replace("subject:\n", "subject:\n  build: [[make]]\n")


def test_a_calibration_builds_the_commit_several_times(world: CalibrationWorld) -> None:
    """Both rounds of a pair measure one build, so the noise of trials is that of equal builds."""
    make_definition(world.personas.alice, world.project, slug="built", source=BUILT)
    levels = [0.98, 0.99, 1.0, 1.01, 1.02]
    rates = [1000 * levels[pair % 5] * (1 + wobble) for pair in range(10) for wobble in (0, 0.001)]
    calibration = world.calibrate(rates, "built")
    assert calibration.run.builds == 5
    sights = {each.metric.key: each for each in list_sensitivities(calibration)}
    rate, p50 = sights["requests.rate"], sights["latency.p50"]
    assert rate.noise.sigma == pytest.approx(0, abs=1e-9)
    assert rate.build_noise is not None
    assert rate.build_noise.builds == 5
    assert rate.build_noise.sigma == pytest.approx(0.0158, abs=0.0002)
    assert rate.build_interval == (rate.build_noise.low, rate.build_noise.high)
    assert p50.build_noise is not None
    stored = HostBuildNoise.objects.get(series__metric__key="requests.rate")
    assert (stored.series.host, stored.epoch, stored.run) == (world.host, 0, calibration.run)
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        HostBuildNoise.objects.update(sigma=0)


def test_invalid_trials_say_nothing_about_builds(world: CalibrationWorld) -> None:
    make_definition(world.personas.alice, world.project, slug="built", source=BUILT)
    run = world.measured([1000 + place % 3 for place in range(20)], "built")
    Trial.objects.filter(job__run=run, round__in=[1, 2, 11, 12]).update(validity="invalid")
    judge_calibrations()
    builds = HostBuildNoise.objects.filter(run=run).values_list("builds", flat=True)
    assert set(builds) == {4}


def test_without_build_steps_there_is_no_noise_between_builds(world: CalibrationWorld) -> None:
    calibration = world.calibrate(build_rates(NOISY))
    assert calibration.run.builds == 1
    assert not HostBuildNoise.objects.exists()
    assert {each.build_noise for each in list_sensitivities(calibration)} == {None}


def test_more_metrics_need_more_rounds(world: CalibrationWorld) -> None:
    world.calibrate(build_rates(NOISY))
    few = estimate_resolution(world.plan(), 0.06).rounds
    connections = ", ".join(map(str, [4, *range(5, 25)]))
    source = DEFINITION.replace("connections: [4]", f"connections: [{connections}]")
    make_definition(world.personas.alice, world.project, source=source)
    assert estimate_resolution(world.plan(), 0.06).rounds > few


@pytest.mark.parametrize(
    ("sigmas", "rounds", "expected"),
    [
        ([0.01], 7, "With 7 rounds, a detects changes of about 3.4 % in requests per second"),
        (
            [0.01],
            3,
            "With 3 rounds, a decides nothing in requests per second; for 6 % take 5 rounds",
        ),
        (
            [0.01, 0.03],
            7,
            "With 7 rounds, a detects changes of about 3.4 to 7.4 %, depending on the case, in "
            "requests per second; for 6 % take 9 rounds",
        ),
        (
            [0.3],
            7,
            "With 7 rounds, a detects changes of about 105 % in requests per second; for 6 % not "
            "even 100 rounds suffice",
        ),
        ([0.0], 5, "With 5 rounds, a detects changes of about 3 % in requests per second"),
    ],
)
def test_a_forecast_is_a_sentence(sigmas: list[float], rounds: int, expected: str) -> None:
    assert format_forecast("a", [_sight(sigma) for sigma in sigmas], rounds) == expected


def test_each_case_of_a_mixed_matrix_is_calibrated_by_its_own_loop(world: CalibrationWorld) -> None:
    make_definition(world.personas.alice, world.project, slug="mixed", source=MIXED_LOOPS)
    calibration = world.calibrate([1000 + 10 * (number % 3) for number in range(10)], "mixed")
    loops = {case.key: case.parameters["loop"] for case in calibration.benchmark.cases.all()}
    assert {loops[case]: set(metrics) for case, metrics in calibration.readings.items()} == {
        "closed": {"requests.rate", "latency.p50", "cpu.seconds_per_1k"},
        "open": {"latency.p99", "latency.p50", "cpu.seconds_per_1k"},
    }
    texts = [each.text for each in forecast_resolution(world.plan(benchmark="mixed"))]
    assert ["requests per second" in text for text in texts] == [True, False]
    assert ["latency p99" in text for text in texts] == [False, True]
    chosen = world.plan(benchmark="mixed", cases='loop == "open"')
    (text,) = estimate_resolution(chosen, 0.3).texts
    assert "latency p99" in text
