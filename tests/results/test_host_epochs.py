"""A history says where the host itself was not the same machine any more."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_snapshot
from orchestrator.results.epochs import Epochs, changes_between, epochs_of
from orchestrator.results.histories import history_of
from orchestrator.results.reports import History
from tests.support.factories import (
    Personas,
    finish_run,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)

START = utc_now()


def _at(hour: float) -> datetime:
    return START + timedelta(hours=hour)


@pytest.mark.parametrize(
    ("hours", "epochs"),
    [([0], (0, 0)), ([1], (1, 1)), ([0.5, 3], (0, 2)), ([2, 1], (1, 2)), ([9], (2, 2))],
)
def test_a_measurement_belongs_to_the_epoch_that_its_snapshot_began(
    hours: list[float], epochs: tuple[int, int]
) -> None:
    found = epochs_of([_at(hour) for hour in hours], [_at(1), _at(2)])
    assert (found.first, found.last) == epochs


@pytest.mark.parametrize(
    ("points", "marks"),
    [
        ([(0, 0), (0, 0)], []),
        ([(0, 0), (1, 1), (1, 1)], [(1, 0)]),
        ([(0, 0), (2, 2)], [(1, 0), (1, 1)]),
        # An older commit that was measured later.
        ([(1, 1), (0, 0)], [(1, 0)]),
        # A baseline that was measured again and again.
        ([(0, 2), (0, 0), (1, 1)], [(1, 0), (1, 1), (2, 0)]),
        ([(0, 1), (0, 1)], []),
        # All of it happened before anything was measured.
        ([(3, 3), (3, 3)], []),
        ([], []),
    ],
)
def test_a_change_stands_between_the_points_that_it_may_have_moved(
    points: list[tuple[int, int]], marks: list[tuple[int, int]]
) -> None:
    found = changes_between([Epochs(first=first, last=last) for first, last in points])
    assert list(found) == marks


@pytest.fixture
def host(personas: Personas, settings: Any, tmp_path: Path) -> Host:
    settings.DATA_DIR = tmp_path / "data"
    settings.ALLOW_LOCAL_REPOSITORIES = True
    return make_local_host(personas.alice)


def _history(personas: Personas, host: Host, run: Any) -> History:
    return history_of(
        personas.alice,
        benchmark=run.definition.benchmark,
        metric_key="requests.rate",
        case=run.definition.benchmark.cases.get(),
        host=host,
    )


def test_it_marks_the_first_point_after_a_change(
    personas: Personas, host: Host, tmp_path: Path
) -> None:
    project, shas = make_project(personas.alice, tmp_path / "repository")
    make_definition(personas.alice, project)
    record_snapshot(host=host, facts={"fingerprint": "a", "kernel": "6.1"})
    before = finish_run(make_run(personas.alice, shas[:2]), [1000, 1000])
    assert _history(personas, host, before).changes == ()

    # Since the snapshot of a run here has no kernel, the one before the change says it again.
    record_snapshot(host=host, facts={"fingerprint": "a", "kernel": "6.1"})
    changed = record_snapshot(host=host, facts={"fingerprint": "b", "kernel": "6.2"})
    after = finish_run(make_run(personas.alice, [shas[0], shas[2]]), [900, 900])

    history = _history(personas, host, after)
    assert [(p.epochs.first, p.epochs.last) for p in history.points] == [(0, 1), (0, 0), (1, 1)]
    assert [(each.before, each.changed) for each in history.changes] == [
        (1, {"kernel": ["6.1", "6.2"]}),
        (2, {"kernel": ["6.1", "6.2"]}),
    ]
    assert history.changes[0].at == changed.taken_at
