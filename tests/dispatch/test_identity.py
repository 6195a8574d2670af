"""One machine is one host of a team; other teams learn nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.members import Member
from orchestrator.core.errors import ConflictError, HostSetupError
from orchestrator.dispatch.remediation import NEW_MACHINE_ID, OTHER_WORK_DIR
from orchestrator.fleet.host_settings import release_host, retire_host
from orchestrator.fleet.identities import require_separate_machines
from orchestrator.fleet.models import CheckStep, Host, HostCheck
from orchestrator.fleet.services import record_snapshot
from orchestrator.transport.base import CommandResult
from orchestrator.transport.local import LocalTransport
from tests.support.engine import check_now
from tests.support.factories import Personas, make_local_host
from tests.web.conftest import signed_in


@pytest.fixture(autouse=True)
def one_host_per_machine(settings: Any, tmp_path: Path) -> None:
    settings.ONE_HOST_PER_MACHINE = True
    settings.DATA_DIR = tmp_path


def check_agent(member: Member, host: Host) -> HostCheck:
    """Return the result of the step alone, as if those around it had passed."""
    for step in CheckStep:
        if step != CheckStep.AGENT:
            HostCheck.objects.update_or_create(
                host=host, step=step, defaults={"outcome": "passed", "seconds": 0.1}
            )
    HostCheck.objects.filter(host=host, step=CheckStep.AGENT).delete()
    check_now(member=member, host_id=host.pk)
    return HostCheck.objects.get(host=host, step=CheckStep.AGENT)


def test_a_machine_is_one_host_of_a_team(personas: Personas) -> None:
    alice = personas.alice
    first, second = (make_local_host(alice, name) for name in ("first", "second"))
    assert check_agent(alice, first).outcome == "passed"
    assert check_agent(alice, first).outcome == "passed", "it is itself"
    check = check_agent(alice, second)
    assert check.outcome == "failed"
    assert check.message.startswith("this machine is already the host first of this team")
    assert check.other_host == first
    client: Client = signed_in(alice)
    page = client.get(reverse("host-checks", args=[second.pk])).content.decode()
    assert f'<a href="{reverse("host", args=[first.pk])}">Show the host first</a>' in page
    assert not second.snapshots.exists()

    theirs = make_local_host(personas.mallory, "theirs")
    assert check_agent(personas.mallory, theirs).outcome == "passed", "of another team"

    # The second one is a copy of the first one's disk, which has the same machine id.
    Host.objects.filter(pk=first.pk).update(boot_id="another")
    assert check_agent(alice, second).remedies == [list(each) for each in NEW_MACHINE_ID]
    Host.objects.filter(pk=first.pk).update(state="retired")
    assert check_agent(alice, second).outcome == "passed"


def test_a_retired_host_whose_machine_another_host_has_stays_retired(personas: Personas) -> None:
    alice = personas.alice
    first, second = (make_local_host(alice, name) for name in ("first", "second"))
    assert check_agent(alice, first).outcome == "passed"
    retire_host(member=alice, host_id=first.pk)
    assert check_agent(alice, second).outcome == "passed"
    with pytest.raises(ConflictError, match="machine of first is the host second now"):
        release_host(member=alice, host_id=first.pk)
    first.refresh_from_db()
    assert first.state == "retired"
    # Its work directory went to another team, whose name stays secret.
    retire_host(member=alice, host_id=second.pk)
    theirs = make_local_host(personas.mallory, "their-secret-name")
    record_snapshot(host=theirs, facts={"installation_id": first.installation_id})
    with pytest.raises(ConflictError, match="work directory of first now") as caught:
        release_host(member=alice, host_id=first.pk)
    assert "their-secret-name" not in str(caught.value)
    Host.objects.filter(pk=theirs.pk).update(installation_id="")
    assert release_host(member=alice, host_id=first.pk).state == "ready"


def test_a_work_directory_of_another_team_is_refused_without_its_name(personas: Personas) -> None:
    alice = personas.alice
    theirs = make_local_host(personas.mallory, "their-secret-name")
    own = make_local_host(alice, "own")
    assert check_agent(alice, own).outcome == "passed"
    own.refresh_from_db()
    record_snapshot(host=theirs, facts={"installation_id": own.installation_id})
    check = check_agent(alice, own)
    assert check.outcome == "failed"
    assert "another host of Pitwall has the same one" in check.message
    assert "their-secret-name" not in check.message
    assert check.other_host is None


def test_a_shared_work_directory_is_refused_with_another_one(
    personas: Personas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network file system would need rights that tests do not have: only the answer is made."""
    answer = {"error": {"code": "network_file_system", "message": "it is on nfs4"}}

    def run(*_: Any, **__: Any) -> CommandResult:
        return CommandResult(exit_status=1, stdout=json.dumps(answer).encode(), stderr=b"")

    monkeypatch.setattr(LocalTransport, "run", run)
    check = check_agent(personas.alice, make_local_host(personas.alice))
    assert (check.outcome, check.message) == ("failed", "it is on nfs4")
    assert check.remedies == [list(each) for each in OTHER_WORK_DIR]


def test_a_job_needs_separate_machines(personas: Personas) -> None:
    hosts = [make_local_host(personas.alice, name) for name in ("first", "second")]
    require_separate_machines(hosts)
    Host.objects.update(boot_id="one")
    with pytest.raises(HostSetupError, match="the hosts first and second are one machine"):
        require_separate_machines(hosts)
    require_separate_machines(hosts[:1])
    Host.objects.filter(pk=hosts[0].pk).update(boot_id="other")
    require_separate_machines(hosts)
