"""The start command of an absent host: another host of its team runs it over SSH."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db.models.functions import Now

from orchestrator.accounts.models import AuditEntry
from orchestrator.core.errors import (
    InvalidRequestError,
    LoginRefusedError,
    PermissionRefusedError,
)
from orchestrator.dispatch import host_starts
from orchestrator.dispatch.probes import probe_host
from orchestrator.fleet.host_settings import set_host_settings
from orchestrator.fleet.models import Host, HostState
from orchestrator.fleet.services import NewHost, add_credential, enter_host, record_host_error
from orchestrator.runs import leasing
from orchestrator.runs.models import Job
from orchestrator.transport.keys import generate_key
from tests.engine.test_over_ssh import add_confirmed
from tests.support.factories import (
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
)
from tests.support.sshd import SshServer, start_sshd

SCRIPT = """\
#!/bin/sh
printf %s "$1" >> starts
echo the relay is stuck >&2
exit 1
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with start_sshd(tmp_path_factory.mktemp("ssh")) as running:
        yield running


@pytest.fixture
def absent(personas: Personas, machine: SshServer) -> Host:
    """A host at whose port nothing listens, and the command that `bench-1` runs to start it."""
    add_confirmed(machine, personas)
    machine.work_dir.mkdir(exist_ok=True)
    key = add_credential(
        member=personas.alice, name="own", private_key=generate_key().private_openssh
    )
    new = NewHost(name="away", address="127.0.0.1", port=1, login="a", credential_id=key.pk)
    host = enter_host(member=personas.alice, new=new)
    script = machine.work_dir / "start"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    Host.objects.filter(pk=host.pk).update(
        host_key=machine.host_key, state=HostState.UNREACHABLE, unreachable_since=Now()
    )
    return set_host_settings(
        member=personas.alice,
        host_id=host.pk,
        start_command=["./start", "$HOME;a b'"],
        start_host="bench-1",
    )


def probe(host: Host, *, failed: int | None = None) -> str:
    """Return the message of the host after its next probe."""
    changes = {} if failed is None else {"failed_probes": failed}
    Host.objects.filter(pk=host.pk).update(probe_at=Now(), **changes)
    assert not probe_host(host.pk)
    host.refresh_from_db()
    return host.message


def load_runs() -> list[str]:
    entries = AuditEntry.objects.filter(action="host.start_command_run").order_by("pk")
    return list(entries.values_list("subject", flat=True))


def test_another_host_runs_the_start_command_of_an_absent_host(
    absent: Host, machine: SshServer
) -> None:
    starts = machine.work_dir / "starts"
    message = probe(absent)
    # No shell reads the arguments.
    assert starts.read_text() == "$HOME;a b'"
    assert "cannot be reached" in message
    assert message.endswith("start command on bench-1 failed: status 1: the relay is stuck")
    assert load_runs() == ["away, on bench-1: status 1: the relay is stuck"]
    # It gets time to start, and then another command. The message keeps why the last one failed.
    for _ in range(4):
        assert probe(absent).endswith("the relay is stuck")
    assert len(load_runs()) == 1
    assert probe(absent).endswith("the relay is stuck")
    assert len(load_runs()) == 2
    assert Host.objects.get(name="bench-1").state == HostState.READY


def test_a_start_command_has_a_time_limit(
    absent: Host, monkeypatch: pytest.MonkeyPatch, personas: Personas
) -> None:
    monkeypatch.setattr(host_starts, "COMMAND_S", 0.5)
    set_host_settings(member=personas.alice, host_id=absent.pk, start_command=["sleep", "60"])
    assert "sleep took longer than 0.5 s" in probe(absent)
    assert Host.objects.get(name="bench-1").state == HostState.READY


def test_a_start_command_does_not_run_on_a_host_that_measures_or_is_held(
    absent: Host, personas: Personas, tmp_path: Path
) -> None:
    project, shas = make_project(personas.alice, tmp_path / "origin")
    make_definition(personas.alice, project)
    make_run(personas.alice, shas[:1], rounds=1, hosts=("bench-1",))
    (job_id,) = leasing.lease_queued_jobs()
    assert "not run: a job measures on bench-1" in probe(absent, failed=0)
    leasing.release(Job.objects.get(pk=job_id))
    helper = Host.objects.get(name="bench-1")
    record_host_error(host=helper, error=LoginRefusedError("another key"))
    assert "not run: bench-1 is quarantined" in probe(absent, failed=0)
    Host.objects.filter(pk=absent.pk).update(start_host=None)  # as after its removal
    assert "was removed" in probe(absent, failed=0)
    assert load_runs() == []


def test_a_start_command_names_another_host_of_the_team(absent: Host, personas: Personas) -> None:
    make_local_host(personas.alice, "workers")
    make_local_host(personas.mallory, "theirs")

    def change(member: object = personas.alice, **start: object) -> None:
        set_host_settings(member=member, host_id=absent.pk, **start)  # type: ignore[arg-type]

    for name in ("away", "workers", "theirs", "nobody"):
        with pytest.raises(InvalidRequestError, match="there are: bench-1") as caught:
            change(start_host=name)
        assert caught.value.field == "start_host"
    for wrong in ([""], ["x" * 131], ["a\nb"], []):
        with pytest.raises(InvalidRequestError) as caught:
            change(start_command=wrong)
        assert caught.value.field == "start_command"
    with pytest.raises(PermissionRefusedError):
        change(personas.bob, start_command=["true"])
    change(start_command=["virsh", "start", "away"])
    change(start_command=[], start_host="")
    entries = AuditEntry.objects.filter(action="host.start_command_changed").order_by("pk")
    assert [entry.subject for entry in entries][1:] == [
        "away: `virsh start away` on bench-1",
        "away: no start command",
    ]
