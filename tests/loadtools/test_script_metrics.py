import pytest

from orchestrator.loadtools.metrics import METRICS, find_metric, find_metrics


@pytest.mark.parametrize(
    ("key", "title", "unit", "better", "judged"),
    [
        ("script.upload_s", "Script: upload", "s", "lower", True),
        ("script.pages_per_s", "Script: pages", "1/s", "higher", True),
        ("script.first_page_bytes", "Script: first page", "B", "lower", True),
        ("script.hit_ratio", "Script: hit", "ratio", "higher", False),
        ("script.retries_count", "Script: retries", "count", "lower", False),
    ],
)
def test_the_suffix_of_a_key_is_its_unit(key, title, unit, better, judged):
    metric = find_metric(key)
    assert (metric.key, metric.title, metric.unit, metric.better) == (key, title, unit, better)
    assert metric.informational is not judged


@pytest.mark.parametrize(
    "key",
    [
        "script.upload", "script.upload_ms", "script._s", "script.s", "script.Upload_s",
        "script.a.b_s", "script.", "upload_s", "script.upload_s\n", "script." + "a" * 41 + "_s",
    ],
)  # fmt: skip
def test_other_keys_are_not_metrics(key):
    assert find_metric(key) is None


def test_no_key_is_too_long_to_be_stored():
    assert find_metric("script." + "a" * 40 + "_per_s") is not None
    assert len("script." + "a" * 40 + "_per_s") <= 60


def test_custom_metrics_follow_those_of_the_registry():
    keys = {"script.b_s", "no.such", "latency.p50", "script.a_count", "requests.rate"}
    metric_keys = [metric.key for metric in find_metrics(keys)]
    assert metric_keys == ["requests.rate", "latency.p50", "script.a_count", "script.b_s"]
    assert [metric.key for metric in find_metrics(METRICS)] == list(METRICS)
