"""A history says where the host itself was not the same machine any more."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_snapshot
from orchestrator.histories.histories import load_case_history
from orchestrator.histories.reports import History
from tests.support.factories import (
    Personas,
    finish_run,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)


@pytest.fixture
def host(personas: Personas, data_dir: Path) -> Host:
    return make_local_host(personas.alice)


def _history(personas: Personas, host: Host, run: Any) -> History:
    return load_case_history(
        personas.alice,
        benchmark=run.definition.benchmark,
        metric_key="requests.rate",
        case=run.definition.benchmark.cases.get(),
        host=host,
    )


def test_the_first_point_after_a_host_change_is_marked(
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
    # The baseline was measured on both: its newer point is on the line.
    assert [(each.epoch, each.others) for each in history.points] == [(1, 1), (0, 0), (1, 0)]
    assert [(each.before, each.changed) for each in history.changes] == [
        (1, {"kernel": ["6.1", "6.2"]}),
        (2, {"kernel": ["6.1", "6.2"]}),
    ]
    assert history.changes[0].at == changed.taken_at
    assert [each.bridge for each in history.breaks] == [pytest.approx(1 / 0.9), pytest.approx(0.9)]
