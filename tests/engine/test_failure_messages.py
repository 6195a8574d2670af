"""Whatever fails ends the job in a clear state, with a message that says what to do."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db.models.functions import Now

from orchestrator.comparisons.verdict_cache import load_verdict_cards
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import add_credential
from orchestrator.runs.models import HostLease, Run, Trial
from orchestrator.transport.keys import generate_key
from tests.support.engine import MEASURED, Engine, running_engine, server
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
    make_shared_host,
)

pytestmark = pytest.mark.engine


def failed_run(
    engine: Engine,
    team: Personas,
    folder: Path,
    contender: dict[str, str],
    source: str = DEFINITION,
) -> Run:
    project, shas = make_project(team.alice, folder / "origin", [server(), contender])
    make_definition(team.alice, project, source=source)
    make_local_host(team.alice)
    run = engine.finish(make_run(team.alice, shas))
    assert run.state == "failed"
    assert run.ended_at is not None
    assert not HostLease.objects.exists()
    assert not Trial.objects.filter(state="planned").exists()
    return run


def test_the_output_of_a_server_that_does_not_start_is_shown(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    broken = server(start='sys.exit("no configuration file found")')
    run = failed_run(engine, team, tmp_path, broken)
    assert "no configuration file found" in run.message
    # The baseline's trial of that round was measured and is kept.
    assert Trial.objects.filter(state="measured", variant__position=0).exists()


def test_a_wrong_response_of_a_server_is_reported(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    run = failed_run(engine, team, tmp_path, server(body="Goodbye"))
    assert "Goodbye" in run.message
    assert "Hello, World!" in run.message


#: After 50 requests, one page ends the server and another one fails.
FAILING = """\
import os
seen = {}
def fails(path):
    seen[path] = seen.get(path, 0) + 1
    if path == "/dies" and seen[path] > 50:
        os._exit(3)
    return path == "/error" and seen[path] > 50
"""


@pytest.mark.slow
def test_a_commit_that_fails_under_load_in_two_of_three_cases_is_broken(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    source = DEFINITION.replace("path: /hello\n", 'path: "/{page}"\n').replace(
        "  connections: [4]\n", "  connections: [4]\n  page: [hello, dies, error]\n"
    )
    contender = server(start=FAILING, extra="if fails(self.path): return self.send_error(500)")
    project, shas = make_project(team.alice, tmp_path / "origin", [server(), contender])
    make_definition(team.alice, project, source=source)
    make_shared_host(team.alice)
    run = engine.finish(make_run(team.alice, shas, rounds=4), timeout_s=180)

    assert run.state == "finished", run.message
    (card,) = load_verdict_cards(team.alice, [run])[run.pk]
    assert card.verdict == "broken"
    assert card.counts["broken"] == 2
    assert {each.label for each in card.changes if each.verdict == "broken"} == {
        "connections 4, page dies",
        "connections 4, page error",
    }


@pytest.mark.slow
def test_a_taken_port_is_named(engine: Engine, team: Personas, tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        source = DEFINITION.replace("  ready:", f"  port: {port}\n  ready:")
        run = failed_run(engine, team, tmp_path, server(start="# same"), source)
    assert str(port) in run.message


def test_the_output_of_a_failed_build_is_shown(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    source = DEFINITION.replace(
        "  start:", '  build: [["{python}", "-c", "import check"]]\n  start:'
    )
    contender = {**server(), "check.py": "raise SystemExit('the compiler is on strike')"}
    project, shas = make_project(
        team.alice, tmp_path / "origin", [{**server(), "check.py": ""}, contender]
    )
    make_definition(team.alice, project, source=source)
    make_shared_host(team.alice)
    run = engine.finish(make_run(team.alice, shas))
    assert run.state == "failed"
    assert "on strike" in run.message
    (card,) = load_verdict_cards(team.alice, [run])[run.pk]
    assert card.verdict == "broken"


def test_a_missing_load_tool_is_reported(team: Personas, tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in ("git", "tar", "sh", "test", "env"):
        folder = next(p for p in (Path("/usr/bin"), Path("/bin")) if (p / tool).exists())
        (bare / tool).symlink_to(folder / tool)
    project, shas = make_project(team.alice, tmp_path / "origin", [server()])
    make_definition(team.alice, project)
    make_local_host(team.alice)
    with running_engine(tmp_path, PITWALL_OHA="", PATH=str(bare)) as engine:
        run = engine.finish(make_run(team.alice, shas))
    # What the host cannot measure is no failure of what is measured.
    assert run.state in MEASURED
    assert set(Trial.objects.values_list("state", flat=True)) == {"unsupported"}
    assert not HostLease.objects.exists()
    assert "oha" in run.message
    assert "install" in run.message


@pytest.fixture
def unreachable(team: Personas, tmp_path: Path) -> Iterator[Run]:
    """A queued run on a host behind a port at which nobody listens."""
    project, shas = make_project(team.alice, tmp_path / "origin", [server(), server(start="#")])
    make_definition(team.alice, project)
    host = make_local_host(team.alice)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        Host.objects.filter(pk=host.pk).update(
            transport="ssh",
            address="127.0.0.1",
            port=unused.getsockname()[1],
            login="nobody",
            host_key=generate_key().public_openssh,
            credential=add_credential(member=team.alice, name="key"),
        )
        yield make_run(team.alice, shas)


def test_a_job_waits_for_an_unreachable_host_until_its_wait_limit(
    unreachable: Run, engine: Engine
) -> None:
    """The workers probe the host meanwhile; the job loses no attempt."""
    host = Host.objects.get()

    def was_probed_twice() -> bool:
        host.refresh_from_db()
        return host.failed_probes >= 2

    engine.wait_for(was_probed_twice)
    job = unreachable.jobs.get()
    assert (job.state, job.attempt, host.state) == ("queued", 1, "unreachable")
    assert "127.0.0.1" in job.message
    assert "The job waits for it" in job.message
    assert not HostLease.objects.exists()
    Run.objects.update(waits_until=Now())
    run = engine.finish(unreachable)
    assert run.state == "failed"
    assert "the wait limit of the run" in run.message
    assert "here has not answered since" in run.message
    assert not Trial.objects.filter(state="planned").exists()
