"""The link that makes the first user: once, for an hour, on this machine, while there is nobody."""

import re
from io import StringIO

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client

from orchestrator.accounts.models import AuditEntry, Membership, Team, User
from orchestrator.core.this_machine import is_local_request
from tests.support.factories import PASSWORD, Personas

ACCOUNT = {"team": "Web servers", "username": "olivia", "password": PASSWORD, "again": PASSWORD}


def setup_path() -> str:
    out = StringIO()
    call_command("setup_link", stdout=out)
    match = re.search(r"/setup/\S+", out.getvalue())
    assert match, out.getvalue()
    return match[0]


def test_setup_link_creates_one_owner_and_one_team(db: None) -> None:
    path, browser = setup_path(), Client()
    assert "There is no account yet" in browser.get("/login").content.decode()
    assert browser.get(path).status_code == 200
    assert "expired or was replaced" in browser.get("/setup/pwsetup_guessed").content.decode()
    for wrong in ({"team": "!"}, {"password": "short", "again": "short"}, {"username": "a b"}):
        assert browser.post(path, {**ACCOUNT, **wrong}).status_code == 422, wrong
    assert not User.objects.exists()
    assert not Team.objects.exists()
    assert browser.post(path, ACCOUNT).headers["Location"] == "/"
    assert "Web servers" in browser.get("/").content.decode()
    assert Membership.objects.get().role == "owner"
    assert AuditEntry.objects.filter(action="team.created").exists()
    assert AuditEntry.objects.filter(action="login.succeeded", actor_name="olivia").count() == 1
    assert browser.cookies["known_device"].value
    assert Client().post(path, {**ACCOUNT, "username": "eve"}).status_code == 410
    assert User.objects.count() == 1
    assert "There is no account yet" not in Client().get("/login").content.decode()


def test_setup_link_is_refused_once_a_user_exists(personas: Personas) -> None:
    out = StringIO()
    call_command("setup_link", stdout=out)
    assert "/setup/" not in out.getvalue()
    assert "log in" in out.getvalue()


def test_setup_link_expires_and_only_the_newest_works(db: None) -> None:
    old = setup_path()
    new = setup_path()
    assert Client().get(old).status_code == 410
    assert Client().get(new).status_code == 200
    cache.clear()
    assert Client().get(new).status_code == 410


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("192.0.2.7", {}),
        ("127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}),
        ("127.0.0.1", {"X-Real-IP": "192.0.2.7"}),
        ("127.0.0.1", {"Forwarded": "for=192.0.2.7"}),
        ("127.0.0.1", {"Via": "1.1 proxy"}),
        ("", {}),
    ],
)
def test_setup_link_works_only_on_this_machine(
    db: None, address: str, headers: dict[str, str]
) -> None:
    path, elsewhere = setup_path(), Client(REMOTE_ADDR=address)
    assert elsewhere.get(path, headers=headers).status_code == 403
    assert elsewhere.post(path, ACCOUNT, headers=headers).status_code == 403
    assert not User.objects.exists()


def test_setup_recognises_requests_from_this_machine() -> None:
    assert is_local_request("127.0.0.1", ["Host", "Accept"])
    assert is_local_request("::1", [])
    assert not is_local_request("::ffff:192.0.2.1", [])
