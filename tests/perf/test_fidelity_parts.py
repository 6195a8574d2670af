"""Direct loads and loads through Pitwall are compared; significant differences are reported."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agents.hostagent.readers.wrk import remove_corrections
from orchestrator.benchmarks.load_specs import build_load_specs, get_tool
from orchestrator.benchmarks.spec import from_data
from orchestrator.runs.models import Trial
from perf.fidelity.extent import FULL
from perf.fidelity.loads import LOADS, build_files
from perf.fidelity.overhead import compute_overhead
from perf.fidelity.pitwall import PitwallError, build_definition
from perf.fidelity.ratios import estimate_ratio
from perf.fidelity.target import Target
from perf.fidelity.tool_output import PrintedValues, read_h2load, read_oha
from perf.fidelity.wrk_correction import add_latencies, find_percentile_us

TARGET = Target(binary=Path("/server"), repository=Path("/repository"), sha="0" * 40)
TIMES = {"{ms}": str(1000 * FULL.duration_s), "{s}": str(FULL.duration_s)}


def measured_start(load):
    """The adapter's start of the load, where the warm-up is a start of its own."""
    spec = from_data(build_definition(load, TARGET, FULL))
    load_spec = replace(build_load_specs(spec, {})[0], warmup_s=0.0)
    tool = get_tool(spec, {})
    return tool.invocations(load_spec, 1)[-1].argv, tool.files(load_spec)


def typed(load):
    words = [word.replace("127.0.0.1", "{address}") for word in load.typed]
    for name, text in TIMES.items():
        words = [word.replace(name, text) for word in words]
    return words


@pytest.mark.parametrize(
    "load", [load for load in LOADS if load.tool != "wrk"], ids=lambda x: x.key
)
def test_a_direct_run_uses_the_arguments_of_pitwall(load):
    argv, files = measured_start(load)
    assert sorted(typed(load)) == sorted(argv)
    assert build_files(load).items() <= files.items()


def test_a_direct_run_of_wrk_differs_only_in_the_script():
    load = next(load for load in LOADS if load.tool == "wrk")
    argv, _ = measured_start(load)
    options = argv[: argv.index("-s")]
    assert typed(load)[: len(options)] == list(options)


@pytest.mark.parametrize(
    ("counts", "interval"),
    [({100: 5, 250: 2, 1000: 1}, 100), ({10: 3}, 100), ({200: 1, 201: 1, 999: 4}, 100)],
)
def test_the_correction_of_wrk_is_added_back(counts, interval):
    assert remove_corrections(add_latencies(counts, interval), interval) == counts


def test_a_latency_is_added_for_each_interval_of_a_slow_response():
    assert add_latencies({100: 1, 450: 1}, 100) == {100: 1, 450: 1, 350: 1, 250: 1, 150: 1}


def test_percentiles_follow_the_rule_of_wrk():
    assert [find_percentile_us({10: 50, 20: 49, 30: 1}, each) for each in (50, 99, 100)] == [
        10,
        20,
        30,
    ]


@pytest.mark.parametrize(
    ("ratios", "deviation"),
    [
        ([0.9, 1.2], 0.0),
        ([1.05, 1.07], 0.06),
        ([0.98, 1.01, 1.02, 0.99, 1.0, 1.03, 0.97, 1.0], 0.0),
        ([0.9] * 10, 0.1),
    ],
)
def test_only_significant_differences_are_deviations(ratios, deviation):
    assert estimate_ratio(ratios).deviation == pytest.approx(deviation)


def test_few_pairs_have_their_range_as_interval():
    ratio = estimate_ratio([1.3, 0.9, 1.0])
    assert (ratio.estimate, ratio.low, ratio.high) == (1.0, 0.9, 1.3)


def test_only_good_responses_of_oha_are_counted(tmp_path):
    report = {
        "statusCodeDistribution": {"200": 90, "302": 2, "503": 8},
        "latencyPercentiles": {"p50": 0.002, "p99": 0.01},
    }
    (tmp_path / "out").write_text(json.dumps(report))
    figures = read_oha(printed(tmp_path, duration_s=2))
    assert (figures.rate, figures.p50, figures.p99) == (46, 0.002, 0.01)


def test_the_rate_of_h2load_and_percentiles_of_its_log_are_read(tmp_path):
    lines = [f"{n}\t200\t{us}\n" for n, us in enumerate(range(100, 0, -1))]
    (tmp_path / "rows").write_text("".join([*lines, "7\t-1\t5000\n"]))
    stdout = "starting benchmark...\n\nfinished in 2.01s, 10963.00 req/s, 375.07KB/s\n"
    figures = read_h2load(printed(tmp_path, stdout=stdout))
    assert (figures.rate, figures.p50, figures.p99) == (10963.0, 50e-6, 99e-6)


def printed(folder, *, stdout="", duration_s=1):
    return PrintedValues(
        out=folder / "out", rows=folder / "rows", stdout=stdout, duration_s=duration_s
    )


def build_trials(*starts):
    """Trials of rounds of two, started so many seconds after the first one; None: not started."""
    first = datetime(2026, 11, 26, tzinfo=UTC)
    return [
        Trial(
            position=position,
            round=position // 2 + 1,
            started_at=None if at is None else first + timedelta(seconds=at),
        )
        for position, at in enumerate(starts)
    ]


def test_the_overhead_is_the_time_between_starts_without_the_load():
    overhead = compute_overhead(build_trials(0, 3, 6.5, 9.25))
    assert overhead.within == pytest.approx((0.5, 0.25))
    assert overhead.between == pytest.approx((1.0,))


def test_the_overhead_of_a_trial_that_did_not_start_is_refused():
    with pytest.raises(PitwallError, match="trial 2 was not started"):
        compute_overhead(build_trials(0, None, 6.5))
