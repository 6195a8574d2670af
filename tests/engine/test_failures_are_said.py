"""Whatever fails ends the job in a clear state, with a message that says what to do."""

import socket
from pathlib import Path

import pytest

from orchestrator.fleet.models import Host
from orchestrator.fleet.services import add_credential
from orchestrator.runs.models import HostLease, Run, Trial
from orchestrator.transport.keys import generate_key
from tests.support.engine import Engine, running_engine, server
from tests.support.factories import (
    DEFINITION,
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
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


def test_it_shows_the_output_of_a_server_that_does_not_start(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    broken = server(start='sys.exit("no configuration file found")')
    run = failed_run(engine, team, tmp_path, broken)
    assert "no configuration file found" in run.message
    # The baseline's trial of that round was measured and is kept.
    assert Trial.objects.filter(state="measured", variant__position=0).exists()


def test_it_says_what_a_server_answered_wrongly(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    run = failed_run(engine, team, tmp_path, server(body="Goodbye"))
    assert "Goodbye" in run.message
    assert "Hello, World!" in run.message


def test_it_names_the_port_that_is_taken(engine: Engine, team: Personas, tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        source = DEFINITION.replace("  ready:", f"  port: {port}\n  ready:")
        run = failed_run(engine, team, tmp_path, server(start="# same"), source)
    assert str(port) in run.message


def test_it_shows_the_output_of_a_build_that_fails(
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
    make_local_host(team.alice)
    run = engine.finish(make_run(team.alice, shas))
    assert run.state == "failed"
    assert "on strike" in run.message


def test_it_says_that_the_load_tool_is_missing(team: Personas, tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in ("git", "tar", "sh", "test", "env"):
        found = next(p for p in (Path("/usr/bin"), Path("/bin")) if (p / tool).exists())
        (bare / tool).symlink_to(found / tool)
    with running_engine(tmp_path, PITWALL_OHA="", PATH=str(bare)) as engine:
        run = failed_run(engine, team, tmp_path, server(start="# same"))
    assert "oha" in run.message
    assert "install" in run.message


def test_it_gives_up_on_a_host_that_cannot_be_reached(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
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
        run = engine.finish(make_run(team.alice, shas))
    assert run.state == "failed"
    assert "127.0.0.1" in run.message
    host.refresh_from_db()
    assert host.state == "unreachable"
    assert not HostLease.objects.exists()
