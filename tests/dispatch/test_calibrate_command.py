"""`manage.py calibrate`."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from orchestrator.runs.models import Run
from tests.support.factories import (
    Personas,
    make_local_host,
)
from tests.support.world import World


@pytest.fixture
def shas(world: World) -> list[str]:
    return world.shas


def _calibrate(*args: str, **options: Any) -> str:
    out = StringIO()
    call_command("calibrate", *args, stdout=out, **options)
    return out.getvalue()


def test_a_calibration_is_queued_as_an_admin_of_the_team(
    personas: Personas, shas: list[str]
) -> None:
    output = _calibrate("here", "server/hello", "--pairs", "6", "--commit", shas[0])
    run = Run.objects.get()
    assert output == f"run {run.pk}: 12 rounds\n"
    assert (run.trigger, run.requested_by) == ("calibration", personas.alice.user)
    assert run.variants.get().commit.sha == shas[0]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("nowhere", "hello"), "there is no host nowhere"),
        (("here", "hello", "--team", "blue"), "there is no host here in the team blue"),
        (("here", "none"), "the team has no benchmark none"),
        (("here", "hello", "--pairs", "3"), "expected 5 to 50 pairs"),
        (("here", "hello", "--commit", "none"), "there is no commit, branch or tag none"),
    ],
)
def test_an_invalid_calibrate_command_is_reported(
    shas: list[str], args: tuple[str, ...], words: str
) -> None:
    with pytest.raises(CommandError, match=words):
        _calibrate(*args)
    assert not Run.objects.exists()


def test_an_ambiguous_host_name_needs_the_team(personas: Personas, shas: list[str]) -> None:
    make_local_host(personas.mallory)
    with pytest.raises(CommandError, match="choose one of blue, red with --team"):
        _calibrate("here", "hello")
    assert _calibrate("here", "hello", "--team", "red").startswith("run ")


def test_waiting_ends_with_the_run_and_reports_a_missing_result(
    shas: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # In place of the engine: at the first look, the run has failed.
    monkeypatch.setattr(
        "orchestrator.dispatch.management.commands.calibrate.time.sleep",
        lambda _: Run.objects.update(state="failed", message="no route"),
    )
    with pytest.raises(CommandError, match="has no result: the run failed: no route"):
        _calibrate("here", "hello", "--wait")
