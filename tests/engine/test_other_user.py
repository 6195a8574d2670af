"""Over SSH as root, what is measured runs as a user of its own, whatever it tries."""

import json
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.hostagent.bundle import build_bundle
from orchestrator.fleet.checks import CheckList
from orchestrator.fleet.host_settings import set_host_settings
from orchestrator.fleet.models import CheckStep, Host, HostCheck
from orchestrator.fleet.services import add_host, confirm_host_key
from orchestrator.runs.models import Run, Trial
from tests.engine.test_over_ssh import describe
from tests.support.engine import Engine, assert_measured, check_now, server
from tests.support.factories import (
    Personas,
    make_definition,
    make_project,
    make_run,
)
from tests.support.malicious_server import prying
from tests.support.other_user import NOBODY, needs_root, public_folder, public_python
from tests.support.sshd import SshServer, start_sshd

pytestmark = [pytest.mark.engine, needs_root]


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with start_sshd(tmp_path_factory.mktemp("ssh")) as running:
        yield running


@pytest.fixture
def work_dir() -> Iterator[Path]:
    with public_folder() as folder:
        yield folder / "work"


@pytest.fixture
def host(team: Personas, machine: SshServer, work_dir: Path) -> Host:
    new = describe(machine, team, work_dir=str(work_dir), python=public_python(), run_as=NOBODY)
    added, shown = add_host(member=team.alice, new=new)
    return confirm_host_key(member=team.alice, host_id=added.pk, host_key=shown.line)


def left_by_another_job(work_dir: Path) -> Path:
    """A build of the same user, as open as an agent could leave it that knew nothing of users."""
    other = work_dir / "builds/other"
    for name in ("tree", "home"):
        (other / name).mkdir(parents=True)
    (other / "tree/server.py").write_text("somebody else's")
    for path in (other, *other.rglob("*")):
        os.chown(path, pwd.getpwnam(NOBODY).pw_uid, -1)
    return other


def measure(engine: Engine, team: Personas, folder: Path, *versions: dict[str, str]) -> Run:
    project, shas = make_project(team.alice, folder, versions)
    make_definition(team.alice, project)
    return engine.finish(make_run(team.alice, shas, hosts=("bench-1",), rounds=1))


def test_a_malicious_benchmark_reads_and_leaves_nothing(
    engine: Engine, team: Personas, host: Host, work_dir: Path, tmp_path: Path
) -> None:
    other = left_by_another_job(work_dir)
    code = prying(program=build_bundle().name, other="builds/other")
    run = measure(engine, team, tmp_path / "origin", server(), server(start=code))
    assert_measured(run)
    assert Trial.objects.filter(state="measured").count() == 2
    (tree,) = (path.parent for path in work_dir.glob("builds/*/tree/found.json"))
    report = json.loads((tree / "found.json").read_text())
    assert {what for what, error in report["tried"].items() if error != "PermissionError"} == set()
    assert report["ids"][0] == pwd.getpwnam(NOBODY).pw_uid
    for pid in (tree / "pids").read_text().split():
        assert not Path(f"/proc/{pid}").exists()
    assert not (work_dir / "scratch").exists()
    assert stat.S_IMODE(other.stat().st_mode) == 0o700


def test_checks_and_jobs_report_why_another_user_cannot_be_used(
    engine: Engine, team: Personas, host: Host, tmp_path: Path
) -> None:
    steps = check_now(member=team.alice, host_id=host.pk)
    assert f"runs as {NOBODY}; agent and load tools run as root" in agent_check(steps).message
    set_host_settings(member=team.alice, host_id=host.pk, run_as="not-there")
    steps = check_now(member=team.alice, host_id=host.pk, again=CheckStep.PYTHON)
    assert steps.blocked == agent_check(steps)
    assert "run as not-there on this host: there is no such user" in agent_check(steps).message
    run = measure(engine, team, tmp_path / "origin", server(), server(start="#"))
    assert run.state == "failed"
    assert "cannot run as not-there on this host: there is no such user" in run.message
    assert not Trial.objects.filter(state="measured").exists()


def agent_check(steps: CheckList) -> HostCheck:
    check = dict(steps.rows)[CheckStep.AGENT]
    assert check is not None
    return check
