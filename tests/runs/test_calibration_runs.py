"""Asking a host to be calibrated: one commit alone, in pairs of rounds."""

from typing import Any

import pytest

from orchestrator.core.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionRefusedError,
)
from orchestrator.fleet.models import Host
from orchestrator.runs.calibration import (
    NewCalibration,
    load_open_calibrations,
    start_calibration,
)
from orchestrator.runs.cancelling import cancel_run
from orchestrator.runs.golden import NewGolden, set_golden
from orchestrator.runs.models import Run
from tests.support.factories import (
    Personas,
    make_definition,
)
from tests.support.world import World


@pytest.fixture
def shas(world: World) -> list[str]:
    make_definition(world.alice, world.project, slug="other")
    return world.shas


@pytest.fixture
def host(world: World, shas: list[str]) -> Host:
    return world.host


def _start(personas: Personas, host: Host, **given: Any) -> Run:
    new = NewCalibration(**{"benchmark": "hello", **given})
    return start_calibration(member=personas.alice, host_id=host.pk, new=new)


def _set_golden(personas: Personas, host: Host, commit: str) -> None:
    new = NewGolden(benchmark="hello", commit=commit, every_hours=1)
    set_golden(member=personas.alice, host_id=host.pk, new=new)


def test_a_calibration_has_two_rounds_a_pair_of_one_commit(
    personas: Personas, host: Host, shas: list[str]
) -> None:
    run = _start(personas, host, commit=shas[0])
    assert (run.trigger, run.rounds, run.requested_by) == ("calibration", 20, personas.alice.user)
    assert [variant.commit.sha for variant in run.variants.all()] == [shas[0]]
    job = run.jobs.get()
    assert job.host == host
    assert list(job.trials.values_list("round", flat=True)) == list(range(1, 21))
    assert list(load_open_calibrations(host)) == [run]


def test_the_default_commit_is_the_newest_of_the_default_branch(
    personas: Personas, host: Host, shas: list[str]
) -> None:
    assert _start(personas, host, pairs=5).variants.get().commit.sha == shas[-1]


def test_the_default_benchmark_is_that_of_the_golden_run(
    personas: Personas, host: Host, shas: list[str]
) -> None:
    _set_golden(personas, host, shas[1])
    run = _start(personas, host, benchmark="")
    assert run.definition.benchmark.slug == "hello"
    assert run.variants.get().commit.sha == shas[1]
    other = _start(personas, host, benchmark="other")
    assert other.variants.get().commit.sha == shas[-1]


def test_a_missing_benchmark_is_reported(personas: Personas, host: Host) -> None:
    with pytest.raises(InvalidRequestError, match="no golden run") as caught:
        _start(personas, host, benchmark="")
    assert caught.value.field == "benchmark"


@pytest.mark.parametrize("pairs", [4, 51])
def test_the_number_of_pairs_has_a_minimum_and_maximum(
    personas: Personas, host: Host, pairs: int
) -> None:
    with pytest.raises(InvalidRequestError, match="5 to 50 pairs") as caught:
        _start(personas, host, pairs=pairs)
    assert caught.value.field == "pairs"


def test_one_calibration_of_a_benchmark_runs_at_a_time(personas: Personas, host: Host) -> None:
    first = _start(personas, host)
    with pytest.raises(ConflictError, match="here is already being calibrated with hello"):
        _start(personas, host)
    second = _start(personas, host, benchmark="other")
    assert list(load_open_calibrations(host)) == [second, first]
    cancel_run(member=personas.alice, run_id=first.pk)
    assert list(load_open_calibrations(host)) == [second]
    _start(personas, host)


def test_viewers_are_refused_and_strangers_find_no_host(personas: Personas, host: Host) -> None:
    new = NewCalibration(benchmark="hello")
    with pytest.raises(PermissionRefusedError, match="calibrate a host"):
        start_calibration(member=personas.bob, host_id=host.pk, new=new)
    with pytest.raises(NotFoundError):
        start_calibration(member=personas.mallory, host_id=host.pk, new=new)
    assert not Run.objects.exists()
