"""Setting a host up: each step against a real SSH server, and what fixes the one that fails."""

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.models import AuditEntry
from orchestrator.dispatch.checkup import MAX_TRIES, run_checks
from orchestrator.fleet.check_requests import claim_request, load_due_host_ids
from orchestrator.fleet.checks import Finding, record_check
from orchestrator.fleet.models import CheckOutcome, CheckRequest, CheckStep, Host, HostCheck
from orchestrator.fleet.services import NewHost, add_credential, enter_host, save_profile
from orchestrator.runs.models import HostLease
from orchestrator.transport.address import HostKey
from tests.support.factories import Personas
from tests.support.html_pages import element, elements, get_text, values
from tests.support.ssh_certificates import sign
from tests.support.sshd import SshServer, start_sshd
from tests.support.world import World


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    with start_sshd(tmp_path) as running:
        yield running


@pytest.fixture
def host(server: SshServer, personas: Personas) -> Host:
    save_profile(member=personas.alice, slug="rack", name="Rack")
    key = add_credential(member=personas.alice, name="key", private_key=server.client_private_key)
    new = NewHost(
        name="rack-1",
        profile_slug="rack",
        address=server.host,
        port=server.port,
        login=server.user,
        credential_id=key.pk,
        work_dir=str(server.work_dir),
    )
    return enter_host(member=personas.alice, new=new)


def _check(client: Client, host: Host, **data: str) -> str:
    """All that can be tried, as a page without scripts asks for it and a worker does it."""
    address = reverse("host-checks", args=[host.pk])
    answer = client.post(address, data, follow=True)
    assert "A worker is running the checks" in answer.content.decode()
    run_checks(host.pk)
    return client.get(address).content.decode()


def _pin(client: Client, host: Host, page: str) -> None:
    (key,) = values(page, "input[name=host_key]")
    client.post(reverse("host-key-accept", args=[host.pk]), {"host_key": key})


def _outcomes(host: Host) -> dict[str, str]:
    return dict(HostCheck.objects.filter(host=host).values_list("step", "outcome"))


def _change(client: Client, host: Host, **changes: Any) -> Any:
    fields = ("address", "port", "login", "work_dir", "python")
    way = {name: getattr(host, name) for name in fields} | {"credential": host.credential_id}
    return client.post(reverse("host-ssh", args=[host.pk]), way | changes)


def test_a_host_is_ready_after_its_key_is_confirmed_and_all_checks_pass(
    server: SshServer, host: Host, alice: Client
) -> None:
    page = _check(alice, host)
    assert _outcomes(host) == {"reach": "passed", "key": "action_required"}
    assert f"answers on port {server.port}: SSH-2.0" in page
    key = HostKey.parse(server.host_key)
    assert key.fingerprint_sha256.replace("+", "&#x2B;") in page.replace("+", "&#x2B;")
    assert "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub" in page

    _pin(alice, host, page)
    host.refresh_from_db()
    assert (host.state, host.host_key) == ("unconfirmed", key.line)
    page = _check(alice, host)
    host.refresh_from_db()
    assert host.state == "ready"
    assert "Hardware profile: Rack Rename" in get_text(page)
    outcomes = _outcomes(host)
    assert len(outcomes) == 9
    assert {outcomes[step] for step in ("reach", "key", "login", "python", "agent")} == {"passed"}
    assert set(outcomes.values()) <= {"passed", "warning"}
    assert "rack-1 is ready" in page
    assert (server.work_dir / "agents").is_dir()
    assert host.snapshots.count() == 1


def test_a_host_behind_a_jump_host_is_checked_through_it(
    server: SshServer, host: Host, alice: Client, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with start_sshd(tmp_path_factory.mktemp("bastion")) as bastion:
        line = f"{bastion.user}@{bastion.host}:{bastion.port} {bastion.host_key}"
        wrong = _change(alice, host, jump_hosts=f"{line}\nnonsense")
        assert wrong.status_code == 422
        assert "Line 2: expected a line such as" in get_text(wrong.content.decode())
        _change(alice, host, jump_hosts=line)
        _check(alice, host)
        check = HostCheck.objects.get(host=host, step="reach")
        assert f"127.0.0.1:{bastion.port} refused to log in" in check.message

        bastion.authorize(server.client_public_key)
        page = _check(alice, host, again="reach")
        assert "through 1 jump host(s): SSH-2.0" in page
        _pin(alice, host, page)
        _check(alice, host)
    outcomes = _outcomes(host)
    assert {outcomes[step] for step in ("reach", "key", "login", "python", "agent")} == {"passed"}
    page = alice.get(reverse("host", args=[host.pk])).content.decode()
    assert " ".join(line.split()[:3]) in get_text(page)


def test_a_generated_key_is_shown_before_a_check_needs_it_and_waits_for_the_user(
    server: SshServer, host: Host, personas: Personas, alice: Client, bob: Client
) -> None:
    key = add_credential(member=personas.alice, name="new")
    Host.objects.update(credential=key, host_key=server.host_key)
    address = reverse("host-checks", args=[host.pk])
    before = alice.get(address)
    command = get_text(element(before, "#install-key"))
    line = " ".join(key.public_key.split()[:2])
    assert f"echo '{line} pitwall' >> ~/.ssh/authorized_keys" in command
    assert values(before, "#steps button[data-copy]", "data-copy") == ["install-key"]
    assert line not in get_text(bob.get(address))

    page = _check(alice, host)
    assert _outcomes(host)["login"] == "action_required"
    waiting = element(page, "li[data-outcome=action_required]")
    assert "waiting for you" in get_text(waiting)
    assert "failed" not in get_text(waiting)
    assert get_text(element(waiting, "pre#command-login-1")) == command
    assert "The key is installed: check again" in get_text(waiting)
    assert not elements(page, "#install-key")

    server.authorize(key.public_key)
    _check(alice, host, again="login")
    assert _outcomes(host)["login"] == "passed"
    host.refresh_from_db()
    assert host.last_seen_at is not None
    # Later a refused login is a failure: the key was removed.
    Host.objects.update(credential=add_credential(member=personas.alice, name="another"))
    _check(alice, host, again="login")
    assert _outcomes(host)["login"] == "failed"


def test_a_failed_check_shows_a_fix_and_keeps_earlier_results(
    server: SshServer, host: Host, alice: Client
) -> None:
    Host.objects.update(port=1, login="nobody-here", python="python9", host_key=server.host_key)
    host.refresh_from_db()
    page = _check(alice, host)
    assert "127.0.0.1:1 refused: nothing listens on this port" in page
    assert "sudo systemctl enable --now ssh" in page

    # It goes on from what was fixed, and stops at what is wrong next.
    assert _change(alice, host, port=server.port).status_code == 302
    page = _check(alice, host)
    assert _outcomes(host) == {"reach": "passed", "key": "passed", "login": "action_required"}
    line = " ".join(server.client_public_key.split()[:2]).replace("+", "&#x2B;")
    assert f"echo &#x27;{line}" in page.replace("+", "&#x2B;")
    assert "~/.ssh/authorized_keys" in page

    host.refresh_from_db()
    _change(alice, host, login=server.user)
    page = _check(alice, host)
    assert _outcomes(host)["python"] == "failed"
    assert "cannot run python9" in page
    assert "sudo apt install python3" in page
    host.refresh_from_db()
    assert host.state == "unconfirmed"


@pytest.mark.parametrize(
    ("address", "message", "command"),
    [("no-such-host.invalid", "has no address", "getent hosts no-such-host.invalid")],
)
def test_a_wrong_name_and_a_closed_port_are_distinguished(
    address: str, message: str, command: str, host: Host, alice: Client
) -> None:
    Host.objects.update(address=address)
    page = _check(alice, host)
    assert message in page
    assert command in page


def test_a_changed_host_key_must_be_confirmed(server: SshServer, host: Host, alice: Client) -> None:
    Host.objects.update(host_key=HostKey.parse(server.other_host_key).line, python="python9")
    page = _check(alice, host)
    assert _outcomes(host)["key"] == "action_required"
    assert "another key than the pinned one" in page
    _pin(alice, host, page)
    _check(alice, host)
    assert _outcomes(host) == {
        "reach": "passed", "key": "passed", "login": "passed", "python": "failed"
    }  # fmt: skip


def test_only_a_user_releases_a_quarantined_host(host: Host) -> None:
    passed = Finding(outcome=CheckOutcome.PASSED, message="it is there")
    for state, then in (("quarantined", "quarantined"), ("unreachable", "ready")):
        Host.objects.update(state=state, host_key="ssh-ed25519 AAAA")
        for step in CheckStep:
            checks = record_check(host=host, step=step, finding=passed, seconds=0.1)
        assert checks.is_through
        host.refresh_from_db()
        assert host.state == then


def test_the_page_polls_while_checks_run(host: Host, alice: Client) -> None:
    address = reverse("host-checks", args=[host.pk])
    assert "load, submit" in values(alice.get(address), "[hx-trigger]", "hx-trigger")
    part = alice.post(address, headers={"HX-Request": "true"}).content.decode()
    # The request itself has tried nothing.
    assert _outcomes(host) == {}
    assert "<html" not in part
    assert "Address and port is running" in part
    assert "load delay:1s" in values(part, "[hx-trigger]", "hx-trigger")
    run_checks(host.pk)
    part = alice.get(address, headers={"HX-Request": "true"}).content.decode()
    assert _outcomes(host) == {"reach": "passed", "key": "action_required"}
    # Something waits for a person: nothing goes on by itself.
    assert "submit" in values(part, "[hx-trigger]", "hx-trigger")
    assert "load delay" not in part


def test_checks_run_on_one_worker_for_a_limited_time(host: Host, alice: Client) -> None:
    alice.post(reverse("host-checks", args=[host.pk]))
    assert load_due_host_ids() == [host.pk]
    for tries in range(1, MAX_TRIES + 1):
        # A worker takes the request and dies.
        request = claim_request(host.pk)
        assert request is not None
        assert request.tries == tries
        assert (claim_request(host.pk), load_due_host_ids()) == (None, [])
        CheckRequest.objects.update(claimed_until=Now() - timedelta(seconds=1))
    run_checks(host.pk)
    assert _outcomes(host) == {"reach": "failed"}
    assert load_due_host_ids() == []


def test_a_certificate_of_the_key_is_stored_shown_and_removed(
    host: Host, alice: Client, bob: Client, mallory: Client
) -> None:
    address = reverse("host-certificate", args=[host.pk])
    key = host.credential
    assert key is not None
    signed = sign(key.public_key, host.login)
    assert mallory.post(address, {"certificate": signed}).status_code == 404
    assert bob.post(address, {"certificate": signed}).status_code == 403
    answer = alice.post(address, {"certificate": key.public_key})
    assert answer.status_code == 422
    assert "is a public key, not its certificate" in get_text(answer.content.decode())
    record_check(
        host=host, step=CheckStep.LOGIN,
        finding=Finding(outcome=CheckOutcome.FAILED, message="refused"), seconds=1,
    )  # fmt: skip
    page = alice.post(address, {"certificate": f" {signed} a comment\n"}, follow=True)
    assert f"Now: for {host.login}, valid from" in get_text(page.content.decode())
    assert _outcomes(host) == {}, "the login is tried again"
    key.refresh_from_db()
    assert key.certificate == signed
    entry = AuditEntry.objects.latest("pk")
    assert (entry.action, entry.subject.split(",")[0]) == (
        "credential.certificate_changed", f"key: for {host.login}",
    )  # fmt: skip
    assert alice.post(address, {"certificate": ""}).status_code == 302
    key.refresh_from_db()
    assert key.certificate == ""


def test_viewers_cannot_start_checks_and_strangers_find_nothing(
    host: Host, bob: Client, mallory: Client
) -> None:
    for name in ("host-checks", "host-key-accept", "host-ssh"):
        address = reverse(name, args=[host.pk])
        assert mallory.post(address, {"host_key": "ssh-ed25519 AAAA"}).status_code == 404
    for name, data in (("host-checks", {}), ("host-key-accept", {"host_key": "ssh-ed25519 AAAA"})):
        assert bob.post(reverse(name, args=[host.pk]), data).status_code == 403
    assert _change(bob, host, port=1).status_code == 403
    page = bob.get(reverse("host-checks", args=[host.pk])).content.decode()
    assert "SSH settings" not in page
    assert "hx-post" not in page
    assert mallory.get(reverse("host-checks", args=[host.pk])).status_code == 404
    host.refresh_from_db()
    assert (host.host_key, _outcomes(host)) == ("", {})


def test_the_setup_script_of_a_host_has_its_login_and_key(
    server: SshServer, host: Host, alice: Client, mallory: Client, world: World
) -> None:
    address = reverse("host-setup-script", args=[host.pk])
    answer = alice.get(address)
    script = answer.content.decode()
    assert 'filename="pitwall-host-setup.sh"' in answer.headers["Content-Disposition"]
    assert f"account={server.user}\n" in script
    assert " ".join(server.client_public_key.split()[:2]) in script
    assert subprocess.run(["sh", "-n"], input=answer.content).returncode == 0
    page = alice.get(reverse("host", args=[host.pk])).content.decode()
    assert get_text(element(page, "#setup-script")) == " ".join(script.split())
    assert mallory.get(address).status_code == 404
    # Nobody logs in to the machine of the workers.
    of_workers = alice.get(reverse("host-setup-script", args=[world.host.pk])).content.decode()
    assert "account=pitwall\npublic_key=''\n" in of_workers


def test_a_busy_host_is_not_checked(world: World, alice: Client) -> None:
    HostLease.objects.create(host=world.host, job=world.run.jobs.get())
    address = reverse("host-checks", args=[world.host.pk])
    assert alice.post(address).status_code == 409
    assert "wait until it has ended" in alice.get(address).content.decode()
    assert not HostCheck.objects.exists()
