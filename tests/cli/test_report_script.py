"""The script in the bundle of a report repeats its measurement with the real command line."""

import io
import os
import shlex
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from orchestrator.benchmarks.services import save_definition
from orchestrator.reports.saved_reports import save_report
from orchestrator.runs.models import Run
from orchestrator.runs.rerun import load_requested_placements
from tests.cli.conftest import write_command
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)

#: Neither its title nor the cases of its run may become commands of the script.
REPORT = """\
version: 1
title: "How fast\\n$(touch hacked) `touch hacked`"
benchmark: server/hello
tables:
  - rows: [commit]
    columns: [{metric: latency.p50}]
"""
CASES = "connections in (4, 8) and '$(touch hacked)' != \"`touch hacked`\""
TIMED_OUT = 5

Script = Callable[[], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def script(world: World, alice: Any, live_server: Any, tmp_path: Path) -> Script:
    """Runs the script of a report of one measured run; it waits for less than a second."""
    world.run = world.measure_run(1000, 1001, 850, rounds=6, cases=CASES)
    save_report(member=world.alice, source=REPORT, slug="fast")
    folder = _unpack_bundle(world, tmp_path)
    command = tmp_path / "command"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(write_command(tmp_path))} "$@"\n')
    command.chmod(0o755)
    environment = {
        "PATH": os.environ["PATH"],
        "PITWALL": str(command),
        "PITWALL_URL": live_server.url,
        "PITWALL_TOKEN": alice.secret,
    }

    def run() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["sh", folder / "rerun.sh", "--timeout", "0.5s"], cwd=tmp_path, env=environment,
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    return run


def _unpack_bundle(world: World, folder: Path) -> Path:
    client = Client()
    client.force_login(world.alice.user)
    answer = client.get("/reports/fast.zip?commit=all")
    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:
        archive.extractall(folder)
    return folder / "report"


def test_the_script_starts_the_same_run(script: Script, world: World, tmp_path: Path) -> None:
    done = script()
    assert done.returncode == TIMED_OUT, done.stderr
    assert "the run is queued after" in done.stderr
    run = Run.objects.exclude(pk=world.run.pk).get()
    assert _describe(run) == _describe(world.run)
    assert not list(tmp_path.rglob("hacked"))


def _describe(run: Run) -> dict[str, Any]:
    variants = run.variants.order_by("position").select_related("commit")
    return {
        "commits": [variant.commit.sha for variant in variants],
        "definition": run.definition_id,
        "cases": run.cases,
        "rounds": run.rounds,
        "placements": list(load_requested_placements(run)),
    }


def test_the_script_refuses_another_definition(script: Script, world: World) -> None:
    old = world.run.definition
    save_definition(
        member=world.alice, project=world.project, slug="hello",
        source=old.source.replace("title: Hello", "title: Hello again"),
    )  # fmt: skip
    done = script()
    assert done.returncode == 1
    assert f"differs from definition-{old.version}.yaml" in done.stderr
    assert Run.objects.get() == world.run
