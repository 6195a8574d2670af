"""Every page and every operation as everybody, against the one table."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client, override_settings

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role, Scope
from orchestrator.accounts.permissions import ANYBODY, OPERATIONS, PAGES, PERSON
from orchestrator.accounts.services import create_token
from orchestrator.api.management.commands.permissions import render_document
from orchestrator.benchmarks.models import Project
from tests.support.fetches import PatientClient
from tests.support.route_params import (
    RouteParams,
    all_operations,
    all_pages,
    make_route_params,
    question,
)

pytestmark = pytest.mark.django_db

ORDER = list(Role.values)
#: Parameters that are required, or checked before the owner of the object.
PAGE_QUERIES = {
    "compare-case": (
        "benchmark=server/many&baseline={0}&contender={1}&case_key={case}&host_id={host_id.hex}"
    )
}
PAGE_BODIES = {
    "run-cancel-part": {"job": "00000000-0000-0000-0000-000000000000"},
    "reference-catalogue": {"suite": "http-clients"},
    "team-switch": {"team": "red"},
}
LEAD_TO_LOG_IN = {"logout", "socialaccount_login_cancelled"}
#: Of the team and of no project.
OF_TEAM = ("{host_id}", "{credential_id}", "{reference_id}", "{profile}")
#: Another team makes one of its own by the same name.
OF_OWN_NAME = {"PUT /profiles/{profile}"}
#: A body names several objects: the error has the position of the unknown one.
NAMED_IN_BODY = {"POST /results", "POST /results/files", "POST /projects", "POST /hosts"}
OF_NOBODY = {"catalogue-suite", "catalogue-run", "invitation", "audit-export"}


@pytest.fixture(scope="module")
def route_params(
    django_db_setup: None, django_db_blocker: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RouteParams]:
    """Filled once; each request is undone after it."""
    folder = tmp_path_factory.mktemp("everything")
    local = override_settings(ALLOW_LOCAL_REPOSITORIES=True, DATA_DIR=folder / "data")
    with django_db_blocker.unblock(), local, undone():  # type: ignore[attr-defined]
        yield make_route_params(folder)


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def signed_in(member: Member | None) -> Client:
    client = PatientClient(raise_request_exception=False)
    if member is not None:
        client.force_login(member.user)
    return client


def may(member: Member, least: str | None) -> bool:
    least = least or "owner"
    return least == ANYBODY or ORDER.index(member.role) >= ORDER.index(least)


def read(answer: HttpResponse) -> str:
    content = b"".join(answer) if answer.streaming else answer.content
    return content.decode(errors="replace")


def test_permission_table_covers_every_page_and_operation_and_no_other() -> None:
    rows = "give it a row in accounts/permissions.py"
    assert set(all_pages()) == set(PAGES), rows
    assert set(all_operations()) == set(OPERATIONS), rows


def test_permissions_document_matches_the_table() -> None:
    kept = Path(__file__).parents[2] / "docs" / "permissions.md"
    assert kept.read_text() == render_document(), "run make permissions"


def send(route_params: RouteParams, browser: Client, method: str, name: str) -> HttpResponse:
    path = route_params.page(name, all_pages()[name])
    if method == "GET":
        query = PAGE_QUERIES.get(name, "").format(*route_params.shas, **route_params.ids)
        return browser.get(f"{path}?{query}")
    return browser.post(path, PAGE_BODIES.get(name, {}))


def test_pages_admit_the_roles_of_the_table(route_params: RouteParams) -> None:
    who = route_params.personas
    members = (who.bob, route_params.carol)
    browsers = [(member, signed_in(member)) for member in members]
    visitor, faults = signed_in(None), []
    for name, parameters in all_pages().items():
        row, path = PAGES[name], route_params.page(name, parameters)
        for method, least in (("GET", row.see), ("POST", row.do)):
            with undone():
                answer = visitor.generic(method, path)
            away = answer.status_code == 302 and answer.headers["Location"].startswith("/login")
            public = ANYBODY in (row.see, row.do)
            personal = PERSON in (row.see, row.do)
            if away is public and least is not None and name not in LEAD_TO_LOG_IN:
                faults.append(f"{method} {name}: a visitor gets {answer.status_code}")
            if public or personal:
                continue
            for member, browser in browsers:
                with undone():
                    status = send(route_params, browser, method, name).status_code
                if least is None and method == "GET":
                    right = status == 405
                else:
                    right = (status != 403) is may(member, least) and status < 500
                if not right or status == 404:
                    faults.append(f"{method} {name}: a {member.role} gets {status}")
                if method == "GET" and status == 200:
                    break  # Roles with more permissions see the same.
    assert not faults, "\n".join(faults)


def test_pages_show_nothing_to_another_team(route_params: RouteParams) -> None:
    mallory, faults = signed_in(route_params.personas.mallory), []
    for name, parameters in all_pages().items():
        row = PAGES[name]
        for method, least in (("GET", row.see), ("POST", row.do)):
            if least in (None, ANYBODY, PERSON):
                continue
            with undone():
                answer = send(route_params, mallory, method, name)
            leak = next((each for each in route_params.names if each in read(answer)), None)
            if parameters and name not in OF_NOBODY and answer.status_code != 404:
                faults.append(f"{method} {name}: another team gets {answer.status_code}")
            if leak or answer.status_code >= 500:
                faults.append(f"{method} {name}: another team reads {leak} {answer.status_code}")
    assert not faults, "\n".join(faults)


def bearer(member: Member, **options: object) -> dict[str, str]:
    made = create_token(member=member, name="of a test", **options)  # type: ignore[arg-type]
    return {"Authorization": f"Bearer {made.secret}"}


def ask(
    route_params: RouteParams, name: str, headers: dict[str, str], method: str = ""
) -> HttpResponse:
    usual, path = name.split()
    query, body = question(route_params, name)
    address = f"{route_params.operation(path)}?{query}"
    client = PatientClient(raise_request_exception=False)
    with undone():
        return client.generic(method or usual, address, body, "application/json", headers=headers)


def test_the_api_admits_the_roles_of_the_table(route_params: RouteParams) -> None:
    faults = []
    who = route_params.personas
    members = [(each, _viewers_token(each)) for each in (who.bob, route_params.carol)]
    lacking = {
        scope: bearer(who.alice, scopes=[each for each in Scope.values if each != scope])
        for scope in Scope.values
    }
    for name in all_operations():
        row = OPERATIONS[name]
        if (status := ask(route_params, name, {}).status_code) != 401:
            faults.append(f"{name}: nobody gets {status}")
        for member, headers in members:
            answer = ask(route_params, name, headers)
            status = answer.status_code
            if (status != 403) is not may(member, row.role) or status >= 500 or status == 404:
                faults.append(f"{name}: a {member.role} gets {status} {read(answer)[:200]}")
            if status == 200 and name.startswith("GET"):
                head = ask(route_params, name, headers, "HEAD")
                if head.status_code != 200 or read(head):
                    faults.append(f"{name}: HEAD gets {head.status_code} {read(head)[:200]}")
                break  # Roles with more permissions read the same.
        answer = ask(route_params, name, lacking[row.scope])
        if answer.status_code != 403 or f"the scope {row.scope}" not in read(answer):
            faults.append(f"{name}: without its scope {answer.status_code}")
    assert not faults, "\n".join(faults)


def test_the_api_shows_nothing_to_another_team_or_project(route_params: RouteParams) -> None:
    faults = []
    mallory = bearer(route_params.personas.mallory)
    other = bearer(route_params.personas.alice, project=Project.objects.get(slug="other").pk)
    for name in all_operations():
        row, mine = OPERATIONS[name], any(each in name for each in OF_TEAM)
        for asker, headers in (("team", mallory), ("project", other)):
            answer = ask(route_params, name, headers)
            status, body = answer.status_code, read(answer)
            refused = asker == "project" and row.whole_team
            named = "{" in name and name not in NAMED_IN_BODY | OF_OWN_NAME
            open_to_all = not named or (asker == "project" and mine)
            if (status == 403) is not refused or (
                (status == 422 and name not in NAMED_IN_BODY) or status >= 500
            ):
                faults.append(f"{name}: another {asker} gets {status} {body[:160]}")
            elif not refused and not open_to_all and status != 404:
                faults.append(f"{name}: another {asker} gets {status}")
            if asker == "team" and (leaks := [e for e in route_params.names if e in body]):
                faults.append(f"{name}: another {asker} reads {leaks}")
            if asker == "project" and "server/many" in body and status < 300:
                faults.append(f"{name}: another {asker} reads {body[:200]}")
    assert not faults, "\n".join(faults)


def _viewers_token(member: Member) -> dict[str, str]:
    """Also of viewers: their tokens are from a time when they were members."""
    as_member = Member(user=member.user, team=member.team, role=Role.MEMBER)
    return bearer(as_member)
