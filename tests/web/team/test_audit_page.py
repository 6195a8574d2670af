"""The audit log: entries cannot change, and can be filtered and exported."""

import csv
import io
import json
from collections.abc import Callable

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.memberships import remove_team
from orchestrator.accounts.models import AuditEntry, Role, Team
from orchestrator.accounts.services import create_token, record_audit, record_system_audit
from tests.support.factories import Personas, add_member
from tests.support.html_pages import elements, get_text


@pytest.fixture
def log(personas: Personas) -> Personas:
    carol = add_member(personas.alice, "carol", Role.MAINTAINER)
    record_audit(member=carol, action="host.added", subject="=1+1")
    record_system_audit(team=personas.alice.team, action="host.quarantined", subject="t490s")
    record_audit(member=personas.mallory, action="host.added", subject="of blue")
    create_token(member=personas.alice, name="CI")
    return personas


def _change() -> None:
    AuditEntry.objects.update(subject="nothing")


def _rename() -> None:
    AuditEntry.objects.filter(actor_name="carol").update(actor=None, actor_name="alice")


def _delete() -> None:
    AuditEntry.objects.all().delete()


def _clear() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM accounts_auditentry WHERE team_id IS NOT NULL")


@pytest.mark.parametrize("attempt", [_change, _rename, _delete, _clear])
def test_the_database_refuses_to_change_the_audit_log(
    log: Personas, attempt: Callable[[], None]
) -> None:
    before = list(AuditEntry.objects.order_by("pk").values())
    with pytest.raises(IntegrityError, match="only ever added to"), transaction.atomic():
        attempt()
    assert list(AuditEntry.objects.order_by("pk").values()) == before


def test_the_name_of_a_removed_user_stays(log: Personas) -> None:
    AuditEntry.objects.get(actor_name="carol").actor.delete()
    entry = AuditEntry.objects.get(actor_name="carol")
    assert (entry.actor, entry.subject) == (None, "=1+1")


def test_removing_a_team_removes_its_audit_log(log: Personas) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Team.objects.get(slug="blue").delete()
    remove_team(team=Team.objects.get(slug="blue"))
    assert not Team.objects.filter(slug="blue").exists()
    assert AuditEntry.objects.count() == 3
    with pytest.raises(IntegrityError), transaction.atomic():
        _delete()


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", {"host.added", "host.quarantined", "token.created"}),
        ("actor=carol", {"host.added"}),
        ("actor=Pitwall", {"host.quarantined"}),
        ("action=host", {"host.added", "host.quarantined"}),
        ("text=T490", {"host.quarantined"}),
        ("since=2999-01-01", set()),
        ("until=2000-01-01", set()),
        ("until=9999-12-31&since=2000-01-01&action=token", {"token.created"}),
    ],
)
def test_the_audit_log_is_searched_and_exported(
    query: str, shown: set[str], log: Personas, alice: Client
) -> None:
    page = alice.get(f"{reverse('audit')}?{query}").content.decode()
    assert {*ALL} & {*map(get_text, elements(page, "code"))} == shown
    rows = list(csv.DictReader(io.StringIO(_file(alice, "csv", query))))
    lines = [json.loads(line) for line in _file(alice, "jsonl", query).splitlines()]
    assert {row["action"] for row in rows} == {row["action"] for row in lines} == shown
    assert "of blue" not in page


ALL = ("host.added", "host.quarantined", "token.created")


def test_formulas_are_exported_as_text(log: Personas, alice: Client) -> None:
    assert "'=1+1" in _file(alice, "csv", "")
    assert '"=1+1"' in _file(alice, "jsonl", "")


def test_the_audit_log_is_paged(log: Personas, alice: Client) -> None:
    for number in range(60):
        record_audit(member=log.alice, action="host.changed", subject=f"number {number}")
    first = alice.get(f"{reverse('audit')}?action=host").content.decode()
    assert "number 59" in first
    assert "number 3<" not in first
    assert "?page=2&amp;action=host" in first
    assert "number 3<" in alice.get(f"{reverse('audit')}?action=host&page=2").content.decode()


def test_the_audit_log_names_the_token(log: Personas, alice: Client) -> None:
    secret = create_token(member=log.alice, name="the robot").secret
    headers = {"Authorization": f"Bearer {secret}"}
    body = {"name": "child", "scopes": ["read"]}
    Client().post("/api/v1/tokens", body, content_type="application/json", headers=headers)
    entry = AuditEntry.objects.order_by("-pk")[0]
    assert (entry.actor_name, entry.token[:9]) == ("alice", "the robot")
    page = Client().get("/api/v1/audit", {"limit": 2}, headers=headers).json()
    assert page["entries"][0]["token"].startswith("the robot")
    rest = Client().get("/api/v1/audit", {"cursor": page["next"]}, headers=headers).json()
    assert {each["action"] for each in rest["entries"]} == {*ALL}


def test_only_maintainers_read_the_audit_log(log: Personas, bob: Client, mallory: Client) -> None:
    assert bob.get(reverse("audit")).status_code == 403
    assert bob.get(reverse("audit-export", args=["csv"])).status_code == 403
    assert "carol" not in mallory.get(reverse("audit")).content.decode()


def _file(browser: Client, ending: str, query: str) -> str:
    answer = browser.get(f"{reverse('audit-export', args=[ending])}?{query}")
    return b"".join(answer.streaming_content).decode()
