"""Addresses outside of the team's pages end with a deleted project, and return with it."""

import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.services import create_token
from orchestrator.benchmarks.models import Benchmark, Fetch, Project
from orchestrator.benchmarks.sharing import set_public
from orchestrator.core.clock import utc_now
from orchestrator.dispatch.background_tasks import claim_schedules
from orchestrator.forges.services import NewConnection, save_connection
from orchestrator.reports.saved_reports import save_report
from orchestrator.results.models import Series
from orchestrator.runs.models import Run, Schedule
from orchestrator.runs.schedules import NewSchedule, create_schedule
from tests.support.fetches import run_fetches
from tests.support.html_pages import get_text, shown_secret
from tests.support.world import World

REPORT = """\
version: 1
title: All cases
benchmark: server/hello
tables:
  - rows: [connections]
    columns: [{metric: requests.rate}]
"""
PUBLIC = "/public/red/server"
#: Deletes something on its page.
DELETE = {
    "project": reverse("project-delete", args=["server"]),
    "benchmark": reverse("benchmark-delete", args=["server", "hello"]),
}


def _restore(alice: Client, kind: str) -> None:
    model = {"project": Project, "benchmark": Benchmark}[kind]
    row = model.with_deleted.exclude(deleted_at=None).get()
    assert alice.post(reverse(f"{kind}-restore", args=[row.pk])).status_code == 302


@pytest.fixture
def addresses(world: World, alice: Client) -> list[str]:
    """Pages, badges and charts of a public project, and shared links to some of them."""
    set_public(member=world.alice, project=world.project, public=True)
    save_report(member=world.alice, source=REPORT, slug="cases")
    series = Series.objects.filter(metric__key="requests.rate").first()
    assert series is not None
    sides = f"baseline={world.shas[0]}&contender={world.shas[1]}"
    pages = [
        f"/runs/{world.run.pk}/",
        f"/compare/?benchmark=server/hello&{sides}",
        "/reports/cases/",
        "/badge/server/hello/value.svg?metric=requests.rate",
        "/badge/server/hello/verdict.svg",
    ]
    shared = [
        shown_secret(alice.post(reverse("share-new"), {"page": page, "days": "7"}))
        for page in pages
    ]
    links = [each[each.index("/shared/") :] for each in shared]
    return [
        *(f"{PUBLIC}{page}" for page in pages),
        *links,
        f"{PUBLIC}/embed/{series.pk}",
        f"{PUBLIC}/history/{series.pk}/data",
        f"{PUBLIC}/reports/cases.csv",
    ]


@pytest.mark.parametrize("kind", DELETE)
def test_public_pages_badges_and_shared_links_end_and_return(
    kind: str, addresses: list[str], alice: Client, client: Client
) -> None:
    before = [client.get(each) for each in addresses]
    assert [each.status_code for each in before] == [200] * len(addresses)

    assert alice.post(DELETE[kind]).status_code == 302

    shown = {each: client.get(each) for each in addresses}
    assert {name: page.status_code for name, page in shown.items() if page.status_code != 404} == {}
    assert [name for name, page in shown.items() if "Hello" in page.content.decode()] == []

    _restore(alice, kind)
    assert [client.get(each).status_code for each in addresses] == [200] * len(addresses)


@pytest.fixture
def push(world: World) -> Callable[[], Any]:
    """Sends a push of the default branch as GitHub does."""
    new = NewConnection(kind="github", repository="ada/server", token="t")
    saved = save_connection(member=world.alice, project=world.project, new=new)
    address = reverse("forge-hook", args=[saved.connection.pk])
    body = json.dumps({"ref": "refs/heads/main", "repository": {"full_name": "ada/server"}})
    signed = hmac.new(saved.secret.encode(), body.encode(), hashlib.sha256).hexdigest()
    sent = iter(range(100))

    def send() -> Any:
        headers = {
            "X-GitHub-Event": "push",
            "X-GitHub-Delivery": f"d-{next(sent)}",
            "X-Hub-Signature-256": f"sha256={signed}",
        }
        return Client().post(address, body, content_type="application/json", headers=headers)

    return send


def test_a_webhook_of_a_deleted_project_is_refused_and_accepted_again(
    world: World, alice: Client, push: Callable[[], Any]
) -> None:
    assert push().status_code == 200
    run_fetches()
    alice.post(DELETE["project"])

    refused = push()

    assert refused.status_code == 404
    assert b"server" not in refused.content
    assert not Fetch.objects.exclude(next_at=None).exists()
    _restore(alice, "project")
    run_fetches()
    assert push().content == b"fetching main, then 0 schedules\n"
    assert Fetch.objects.exclude(next_at=None).exists()


@pytest.mark.parametrize("kind", DELETE)
def test_a_due_schedule_starts_nothing_until_it_is_restored(
    kind: str, world: World, alice: Client, push: Callable[[], Any]
) -> None:
    new = NewSchedule(
        name="nightly", benchmark="hello", cron="0 3 * * *", baseline_ref="main~1",
        contender_ref="main", hosts=("here",),
    )  # fmt: skip
    create_schedule(member=world.alice, new=new)
    alice.post(DELETE[kind])
    Schedule.objects.update(next_at=utc_now() - timedelta(minutes=1))
    push()
    before = Run.objects.count()

    claim_schedules()
    run_fetches()
    claim_schedules()

    assert Run.objects.count() == before
    assert "nightly" not in get_text(alice.get(reverse("schedules")))
    _restore(alice, kind)
    claim_schedules()
    run_fetches()
    claim_schedules()
    assert Run.objects.count() == before + 1


def test_a_token_of_a_deleted_project_reads_and_starts_nothing(world: World, alice: Client) -> None:
    token = create_token(member=world.alice, name="ci", project=world.project.pk)
    headers = {"Authorization": f"Bearer {token.secret}"}
    body = json.dumps(world.run_body())

    def ask() -> list[int]:
        client = Client(headers=headers)
        paths = ("projects/server", f"runs/{world.run.pk}", "benchmarks/server/hello")
        answers = [client.get(f"/api/v1/{path}") for path in paths]
        answers.append(client.post("/api/v1/runs", body, content_type="application/json"))
        return [each.status_code for each in answers]

    assert ask() == [200, 200, 200, 201]
    alice.post(DELETE["project"])
    assert ask() == [404, 404, 404, 404]
    listed = Client(headers=headers).get("/api/v1/projects").json()
    assert listed == {"projects": [], "next": None}
    _restore(alice, "project")
    assert ask()[:3] == [200, 200, 200]
