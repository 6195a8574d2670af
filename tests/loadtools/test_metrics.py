import pytest

from orchestrator.loadtools import model
from orchestrator.loadtools.metrics import (
    METRICS,
    PRIMARY,
    build_percentile_key,
    describe_latency_model,
    find_metric,
)
from orchestrator.stats import summary


def test_primary_metrics_can_have_verdicts():
    for keys in PRIMARY.values():
        assert all(not METRICS[key].informational for key in keys)


@pytest.mark.parametrize(
    ("key", "margin"),
    [
        ("requests.rate", 0.03),
        ("latency.mean", 0.03),
        ("latency.p50", 0.03),
        ("latency.p90", 0.05),
        ("latency.p99", 0.05),
        ("latency.p99.9", 0.10),
        ("cpu.seconds_per_1k", 0.03),
        ("memory.server_peak", 0.03),
    ],
)
def test_margins_are_those_of_the_methodology(key, margin):
    assert METRICS[key].margin == margin


def test_more_requests_and_less_time_are_better():
    assert METRICS["requests.rate"].better == "higher"
    assert {m.better for k, m in METRICS.items() if k.startswith("latency.")} == {"lower"}


def test_metrics_of_the_tool_never_have_verdicts():
    own = [metric for key, metric in METRICS.items() if key.startswith("oha.")]
    assert len(own) > 50
    assert all(metric.informational for metric in own)


def test_a_latency_metric_names_its_load_model():
    assert describe_latency_model("latency.p99", "closed").startswith("closed loop")
    assert describe_latency_model("latency.p99", "open").startswith("open loop")
    assert describe_latency_model("requests.rate", "closed") is None


def test_keys_name_their_percentile():
    assert [build_percentile_key(each) for each in (50, 99.9)] == ["latency.p50", "latency.p99.9"]
    assert find_metric("latency.p99.9").title == "Latency p99.9"
    assert find_metric("no.such") is None


@pytest.mark.parametrize("n", [9, 10, 19, 20, 999, 1_000, 9_999, 10_000, 100_000])
@pytest.mark.parametrize("percentile", [0, 50, 75, 90, 95, 99, 99.9, 99.99, 100])
def test_trials_and_statistics_support_the_same_percentiles(percentile, n):
    assert model.is_supported(percentile, n) is summary.is_supported(percentile, n)
