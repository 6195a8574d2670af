"""A host added as in the web UI is measured over SSH; one that shows another key is not."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.core.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionRefusedError,
    UnreachableError,
)
from orchestrator.fleet.models import CheckStep, Host, HostSnapshot
from orchestrator.fleet.services import (
    NewHost,
    add_credential,
    add_host,
    confirm_host_key,
    remove_host,
    save_profile,
)
from orchestrator.runs.models import Build, Job, Trial
from orchestrator.runs.wait_reasons import describe_wait
from orchestrator.transport.keys import generate_key
from tests.support.engine import Engine, assert_measured, check_now, server
from tests.support.factories import Personas, make_definition, make_project, make_run
from tests.support.sshd import SshServer, start_sshd

pytestmark = pytest.mark.engine


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with start_sshd(tmp_path_factory.mktemp("ssh")) as running:
        yield running


def describe(machine: SshServer, team: Personas, **changes: object) -> NewHost:
    save_profile(member=team.alice, slug="any", name="Any")
    credential = team.alice.team.credentials.filter(name="key").first() or add_credential(
        member=team.alice, name="key", private_key=machine.client_private_key
    )
    values: dict[str, object] = {
        "name": "bench-1",
        "profile_slug": "any",
        "address": machine.host,
        "port": machine.port,
        "login": machine.user,
        "credential_id": credential.pk,
        "work_dir": str(machine.work_dir),
    }
    return NewHost(**{**values, **changes})  # type: ignore[arg-type]


def add_confirmed(machine: SshServer, team: Personas) -> Host:
    host, shown = add_host(member=team.alice, new=describe(machine, team))
    assert shown.line == machine.host_key
    return confirm_host_key(member=team.alice, host_id=host.pk, host_key=shown.line)


def test_a_run_over_ssh_copies_the_agent_once(
    engine: Engine, team: Personas, machine: SshServer, tmp_path: Path
) -> None:
    project, shas = make_project(team.alice, tmp_path / "origin", [server(), server(start="#")])
    make_definition(team.alice, project)
    add_confirmed(machine, team)
    for _ in range(2):
        run = engine.finish(make_run(team.alice, shas, hosts=("bench-1",), rounds=2))
        assert_measured(run)
    assert Trial.objects.filter(state="measured").count() == 8
    assert len(list((machine.work_dir / "agents").glob("*.pyz"))) == 1
    assert len(list((machine.work_dir / "repositories").glob("*.git"))) == 1
    assert list((machine.work_dir / "bundles").iterdir()) == []
    assert len(list((machine.work_dir / "builds").iterdir())) == 2
    # Each commit was built once, and found in the cache by every later round.
    assert [build.cached for build in Build.objects.order_by("pk")] == [False, False, True, True]
    snapshot = HostSnapshot.objects.latest("taken_at")
    assert snapshot.facts["cpu_model"]
    assert len(snapshot.fingerprint) == 64


def test_a_host_with_another_host_key_is_refused(
    engine: Engine, team: Personas, machine: SshServer, tmp_path: Path
) -> None:
    project, shas = make_project(team.alice, tmp_path / "origin", [server(), server(start="#")])
    make_definition(team.alice, project)
    host = add_confirmed(machine, team)
    impostor = generate_key().public_openssh
    confirm_host_key(member=team.alice, host_id=host.pk, host_key=" ".join(impostor.split()[:2]))
    run = make_run(team.alice, shas, hosts=("bench-1",))
    engine.wait_for(lambda: Host.objects.get().state == "quarantined")
    job = run.jobs.get()
    engine.wait_for(lambda: Job.objects.get(pk=job.pk).state == "queued")
    job.refresh_from_db()
    assert job.attempt == 1
    assert "bench-1 is quarantined" in describe_wait(job)
    assert "SHA256:" in describe_wait(job)
    assert not Trial.objects.filter(state="measured").exists()


def test_a_host_is_not_used_before_its_key_is_confirmed(
    team: Personas, machine: SshServer, tmp_path: Path
) -> None:
    project, shas = make_project(team.alice, tmp_path / "origin")
    make_definition(team.alice, project)
    add_host(member=team.alice, new=describe(machine, team))
    with pytest.raises(InvalidRequestError, match="being set up"):
        make_run(team.alice, shas, hosts=("bench-1",))


def test_a_host_that_ends_processes_with_their_connection_fails_the_check(
    team: Personas, machine: SshServer, tmp_path: Path
) -> None:
    host = add_confirmed(machine, team)
    # As systemd-logind with KillUserProcesses=yes: nothing outlives the command.
    ending = tmp_path / "python"
    spaces = "unshare --user --map-root-user --pid --fork --kill-child"
    ending.write_text(f'#!/bin/sh\nexec {spaces} {sys.executable} "$@"\n')
    ending.chmod(0o755)
    if subprocess.run([ending, "-c", ""], check=False).returncode:
        pytest.skip("namespaces are not allowed here")
    Host.objects.filter(pk=host.pk).update(python=str(ending))
    checks = check_now(member=team.alice, host_id=host.pk)
    check = dict(checks.rows)[CheckStep.AGENT]
    assert check is not None
    assert check.outcome == "failed"
    assert "ends all processes" in check.message
    assert "loginctl enable-linger" in str(check.remedies)
    Host.objects.filter(pk=host.pk).update(python=sys.executable)
    checks = check_now(member=team.alice, host_id=host.pk, again=CheckStep.AGENT)
    check = dict(checks.rows)[CheckStep.AGENT]
    assert check is not None
    assert check.outcome == "passed"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "Bench 1"}, "name"),
        ({"address": "a b"}, "address"),
        ({"address": "-oProxyCommand=x"}, "address"),
        ({"login": "root;id"}, "login"),
        ({"port": 0}, "port"),
        ({"work_dir": "a b"}, "work_dir"),
        ({"python": "python3; id"}, "python"),
        ({"profile_slug": "none"}, "profile"),
    ],
)
def test_invalid_host_settings_are_refused(
    team: Personas, machine: SshServer, changes: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        add_host(member=team.alice, new=describe(machine, team, **changes))
    assert caught.value.field == field
    assert not Host.objects.exists()


def test_an_unreachable_host_is_not_stored(team: Personas, machine: SshServer) -> None:
    with pytest.raises(UnreachableError):
        add_host(member=team.alice, new=describe(machine, team, port=1))
    assert not Host.objects.exists()


def test_only_admins_of_the_team_change_hosts(team: Personas, machine: SshServer) -> None:
    host = add_confirmed(machine, team)
    with pytest.raises(PermissionRefusedError):
        remove_host(member=team.bob, host_id=host.pk)
    with pytest.raises(NotFoundError):
        remove_host(member=team.mallory, host_id=host.pk)
    with pytest.raises(ConflictError):
        add_credential(member=team.alice, name="key")
    remove_host(member=team.alice, host_id=host.pk)
    assert not Host.objects.exists()
