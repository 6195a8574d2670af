"""Public projects, shared links and badges through the API, as those see them who were shown."""

import json

import pytest
from django.test import Client

from orchestrator.accounts.models import AuditEntry
from orchestrator.reports.saved_reports import save_report
from orchestrator.runs.models import IdempotencyKey
from tests.api.conftest import ApiClient
from tests.support.world import World

BADGES = "benchmarks/server/hello/badges"
REPORT = """\
version: 1
title: All cases
benchmark: server/hello
tables:
  - rows: [connections]
    columns: [{metric: requests.rate}]
"""


def opened(address: str, settings) -> int:
    assert address.startswith(settings.BASE_URL)
    return Client().get(address.removeprefix(settings.BASE_URL)).status_code


def test_a_link_opens_for_everybody_until_it_is_revoked(
    world: World, alice: ApiClient, bob: ApiClient, mallory: ApiClient, settings
):
    page = alice.get(f"runs/{world.measure_run(1000, 900).pk}").json()["web_url"]
    answer = alice.post("share-links", {"page": page, "days": 7})
    made = answer.json()
    assert (answer.status_code, made["page"], made["project"]) == (201, page, "server")
    assert made["title"].startswith("Run of Hello")
    assert opened(made["url"], settings) == 200
    (listed,) = bob.get("share-links").json()["share_links"]
    assert listed["last_used_at"] is not None
    assert "url" not in listed
    assert mallory.get("share-links").json()["share_links"] == []
    link = f"share-links/{made['id']}"
    assert (bob.delete(link).status_code, mallory.delete(link).status_code) == (403, 404)
    assert alice.delete(link).status_code == 204
    assert opened(made["url"], settings) == 404
    assert alice.get("share-links").json()["share_links"] == []
    assert alice.delete(link).status_code == 404
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert actions >= {"share_link.created", "share_link.revoked"}


def test_a_repeated_request_creates_no_second_link_and_hides_the_secret(
    world: World, alice: ApiClient
):
    save_report(member=world.personas.alice, source=REPORT, slug="cases")
    made, again = (
        alice.post("share-links", {"page": "/reports/cases/"}, key="k").json() for _ in "ab"
    )
    assert again == {**made, "url": None}
    secret = made["url"].split("/shared/")[1].split("/")[0]
    assert secret not in json.dumps(IdempotencyKey.objects.get().answer)
    assert len(alice.get("share-links", project="server").json()["share_links"]) == 1
    assert alice.get("share-links", project="other").json()["share_links"] == []


@pytest.mark.parametrize(
    ("page", "days", "field", "message"),
    [
        ("/settings/", 7, "page", "this page cannot be shared; share a run"),
        ("/compare/?benchmark=hello", 7, "page", "choose a benchmark and two commits first"),
        ("/compare/?benchmark=%00&baseline=a&contender=b", 7, "page", "cannot be shared"),
        ("http://[/", 7, "page", "this page cannot be shared"),
        ("/reports/cases/", 367, "days", "less than or equal to 366"),
        ("/reports/cases/", "7", "days", "valid integer"),
    ],
)
def test_a_page_that_cannot_be_shared_is_refused(alice: ApiClient, page, days, field, message):
    answer = alice.post("share-links", {"page": page, "days": days})
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert message in answer.json()["detail"]


def test_a_public_project_is_seen_by_everybody_until_it_is_private_again(
    world: World, alice: ApiClient, bob: ApiClient, settings
):
    world.measure_run(1000, 900)
    before = bob.get("projects/server/public").json()
    assert (before["public"], opened(before["address"], settings)) == (False, 404)
    assert bob.put("projects/server/public", {"public": True}).status_code == 403
    assert alice.put("projects/server/public", {"public": True}).json()["public_since"]
    assert opened(before["address"], settings) == 200
    alice.put("projects/server/public", {"public": False})
    assert opened(before["address"], settings) == 404


def test_badges_are_shown_by_a_link_or_a_public_project(world: World, alice: ApiClient, settings):
    assert alice.get(BADGES).status_code == 404, "nothing is measured"
    world.measure_run(1000, 900)
    badges = alice.get(BADGES, metric="requests.rate", branch="main").json()
    value, chart = badges["value"], badges["chart"]
    assert value["markdown"].startswith(f"[![hello: newest value]({value['address']})]")
    assert f'src="{chart["address"]}"' in chart["html"]
    assert "branch=main" in badges["verdict"]["address"]
    assert (badges["public"], opened(value["address"], settings)) == (False, 404)
    shared = alice.post("share-links", {"page": value["page"]}).json()["url"]
    shown = Client().get(shared.removeprefix(settings.BASE_URL))
    assert b"<svg" in shown.content
    alice.put("projects/server/public", {"public": True})
    for address in (value["address"], badges["verdict"]["address"], chart["address"]):
        assert opened(address, settings) == 200, address
