"""A load tool's own error, against servers whose true values are known."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.measurements.tool_errors import (
    NEWEST,
    MetricError,
    compute_errors,
    load_tool_errors,
)
from orchestrator.runs.models import Run, Trial
from tests.support.factories import (
    DEFINITION,
    Personas,
    finish_run,
    make_definition,
    make_run,
)
from tests.support.world import World

#: Of a server that answers 1,000 requests a second, its p50 is 4 ms in `finish_run`.
KNOWN = "known: {requests.rate: 1000, latency.p50: 0.004}\n"


@pytest.fixture
def shas(personas: Personas, data_dir: Path, tmp_path: Path) -> list[str]:
    world = World.make(personas, tmp_path, source=DEFINITION + KNOWN)
    make_definition(personas.alice, world.project, slug="unknown")
    return world.shas


def _measured(
    personas: Personas, shas: list[str], rate: float, *, version: str = "1.16.0", **fields: Any
) -> Run:
    """One round of two commits, so two trials, which `version` of oha measured."""
    run = make_run(personas.alice, shas[:2], **{"rounds": 1, **fields})
    finish_run(run, [rate, rate], wobble=0)
    tool = {"name": "oha", "version": version}
    Trial.objects.filter(job__run=run).update(provenance={"tool": tool})
    return run


def _summarise(errors: tuple[MetricError, ...]) -> dict[str, tuple[float, float, float, int]]:
    return {each.metric.key: (each.median, each.low, each.high, each.trials) for each in errors}


def test_median_error_and_range_are_reported_by_tool_and_version(
    personas: Personas, shas: list[str]
) -> None:
    for rate in (1000, 1010, 1250):
        _measured(personas, shas, rate)
    _measured(personas, shas, 500, version="1.15.0")
    older, newer = load_tool_errors(personas.alice)
    assert [(each.tool, each.version) for each in (older, newer)] == [
        ("oha", "1.15.0"),
        ("oha", "1.16.0"),
    ]
    shown = _summarise(newer.errors)
    assert shown["requests.rate"] == pytest.approx((0.01, 0, 0.25, 6))
    assert shown["latency.p50"] == pytest.approx((1 / 1.01 - 1, -0.2, 0, 6))
    assert list(shown) == ["requests.rate", "latency.p50"]
    assert _summarise(older.errors)["requests.rate"] == pytest.approx((-0.5, -0.5, -0.5, 2))


def test_only_the_newest_trials_count(personas: Personas, shas: list[str]) -> None:
    _measured(personas, shas, 2000, rounds=2)
    _measured(personas, shas, 1000, rounds=NEWEST // 2)
    (tool_errors,) = load_tool_errors(personas.alice)
    assert _summarise(tool_errors.errors)["requests.rate"] == pytest.approx((0, 0, 0, NEWEST))


def test_invalid_trials_do_not_count(personas: Personas, shas: list[str]) -> None:
    run = _measured(personas, shas, 1000)
    Trial.objects.filter(job__run=run).update(validity="invalid")
    assert load_tool_errors(personas.alice) == []


def test_definitions_without_known_values_do_not_count(personas: Personas, shas: list[str]) -> None:
    _measured(personas, shas, 1000, benchmark="unknown")
    assert load_tool_errors(personas.alice) == []


def test_tool_errors_are_hidden_from_another_team(personas: Personas, shas: list[str]) -> None:
    _measured(personas, shas, 1000)
    assert load_tool_errors(personas.bob) != []
    assert load_tool_errors(personas.mallory) == []


def test_each_trial_is_compared_with_its_known_values() -> None:
    samples = [
        ({"latency.p50": 0.011, "latency.p99": 0.2}, {"latency.p50": 0.01}),
        ({"latency.p50": 0.022}, {"latency.p50": 0.02, "latency.p99": 0.1}),
        ({}, {"latency.p50": 0.01}),
    ]
    (error,) = compute_errors(samples)
    assert (error.metric.key, error.trials) == ("latency.p50", 2)
    assert (error.low, error.median, error.high) == pytest.approx((0.1, 0.1, 0.1))
    assert compute_errors([]) == []
