"""A comparison separates the difference between builds, or says that it does not."""

import pytest

from orchestrator.comparisons.build_notes import ONE_BUILD_NOTE
from orchestrator.comparisons.compare import compare_commits
from orchestrator.comparisons.formats import to_csv
from orchestrator.comparisons.report import ComparisonReport, MetricComparison
from orchestrator.core.ids import sha256_hex
from orchestrator.fleet.models import HostChange, HostSnapshot
from orchestrator.measurements.version_keys import read_results_version
from orchestrator.results.models import HostBuildNoise, Series
from orchestrator.runs.models import Run, Trial
from orchestrator.runs.trial_order import number_build
from tests.support.factories import DEFINITION, finish_run, make_run, record_again
from tests.support.world import World


@pytest.fixture
def source() -> str:
    return DEFINITION.replace("subject:\n", "subject:\n  build: [[make]]\n")


def measure(world: World, builds: int, *, levels: bool = False) -> Run:
    """A run of ten rounds whose commits perform the same; `levels`: its builds differ."""
    run = make_run(world.alice, world.shas[:2], rounds=10, builds=builds)
    finish_run(run, [1000, 1000])
    changed = {}
    for trial in Trial.objects.filter(job__run=run).select_related("variant"):
        number = number_build(trial.round, builds)
        digest = sha256_hex(f"{run.pk if builds > 1 else ''}{trial.variant_id}{number}".encode())
        trial.provenance = {**trial.provenance, "build": {"digest": digest}}
        trial.save(update_fields=["provenance"])
        if levels and trial.variant.position:
            changed[trial.pk] = {"requests.rate": 1000 * (1 + 0.02 * number)}
    record_again(changed)
    return run


def compare(world: World, run: Run | None = None) -> ComparisonReport:
    before, after = world.commits[:2]
    return compare_commits(
        world.alice, benchmark=world.benchmark, baseline=before, contender=after, run=run
    )


def get_rate(report: ComparisonReport) -> MetricComparison:
    return next(each for each in report.cases[0].metrics if each.key == "requests.rate")


def calibrate(world: World, run: Run, sigma: float, epoch: int = 0) -> None:
    series = Series.objects.get(metric__key="requests.rate", host=world.host)
    HostBuildNoise.objects.create(
        run=run, series=series, epoch=epoch, builds=5, sigma=sigma, low=0, high=0.1, degrees=3
    )


def test_blocks_of_several_builds_are_nested_in_them(world: World) -> None:
    run = measure(world, 5, levels=True)
    report = compare(world)
    result = get_rate(report).result
    assert (result.builds, result.nested) == ((5, 5), True)
    assert result.degrees == pytest.approx(4)
    # The levels of the five builds are 2 to 10 %: their mean is not known well.
    assert get_rate(report).verdict == "inconclusive"
    assert get_rate(compare(world, run)).result == result
    assert "5 builds of each commit were measured" in "".join(report.notes)
    assert ONE_BUILD_NOTE not in report.notes


def test_one_build_of_a_commit_is_reported(world: World) -> None:
    measure(world, 1)
    report = compare(world)
    assert ONE_BUILD_NOTE in report.notes
    assert get_rate(report).result.builds == (1, 1)
    header, row = (line.split(",") for line in to_csv(report).splitlines()[:2])
    columns = dict(zip(header, row, strict=True))
    assert (columns["baseline_builds"], columns["contender_builds"]) == ("1", "1")


def test_builds_of_several_runs_count_together(world: World) -> None:
    measure(world, 1)
    measure(world, 5)
    assert get_rate(compare(world)).result.builds == (6, 6)


def test_the_calibrated_noise_between_builds_widens_the_interval_of_single_builds(
    world: World,
) -> None:
    run = measure(world, 1)
    plain = compare(world)
    before = read_results_version(world.benchmark, world.commits[:2])
    calibrate(world, run, 0.02)
    assert read_results_version(world.benchmark, world.commits[:2]) != before
    report = compare(world)
    assert (get_rate(plain).verdict, get_rate(report).verdict) == ("equivalent", "inconclusive")
    assert get_rate(report).result.build_noise == 0.02
    assert "the calibration of the host measured, up to 2 %" in "".join(report.notes)
    p50 = next(each for each in report.cases[0].metrics if each.key == "latency.p50")
    assert p50.result.build_noise is None


def test_a_calibration_before_a_change_of_the_host_does_not_count(world: World) -> None:
    snapshot = HostSnapshot.objects.create(host=world.host, facts={}, fingerprint="e" * 64)
    HostChange.objects.create(
        host=world.host, snapshot=snapshot, changed={"kernel": ["1", "2"]}, at=snapshot.taken_at
    )
    run = measure(world, 1)
    calibrate(world, run, 0.02, epoch=0)
    assert get_rate(compare(world)).result.build_noise is None


class TestWithoutBuildSteps:
    @pytest.fixture
    def source(self) -> str:
        return DEFINITION

    def test_nothing_is_said(self, world: World) -> None:
        run = measure(world, 1)
        calibrate(world, run, 0.02)
        report = compare(world)
        assert get_rate(report).result.builds == (1, 1)
        assert get_rate(report).result.build_noise is None
        assert ONE_BUILD_NOTE not in report.notes


def test_several_builds_need_no_calibration(world: World) -> None:
    run = measure(world, 5)
    calibrate(world, run, 0.02)
    assert get_rate(compare(world)).result.build_noise is None
