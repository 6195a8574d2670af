"""Each page as the owner, a team mate, a stranger and a visitor."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from orchestrator.accounts.models import User
from tests.support.factories import PASSWORD
from tests.support.world import World

Address = Callable[[World], str]

LISTS = (
    "overview", "runs", "compare", "history", "reports", "benchmarks", "hosts", "profiles",
    "schedules", "settings", "references", "queue",
)  # fmt: skip
FORMS = ("run-new", "report-new", "benchmark-new", "project-new", "reference-import")


def _trial(world: World) -> Any:
    return world.run.jobs.get().trials.first().pk


def _compare(world: World) -> str:
    query = f"benchmark=server/hello&baseline={world.shas[0]}&contender={world.shas[2]}"
    return f"{reverse('compare')}?{query}"


OWNED: dict[str, Address] = {
    "run": lambda world: reverse("run", args=[world.run.pk]),
    "run-progress": lambda world: reverse("run-progress", args=[world.run.pk]),
    "run-trials": lambda world: reverse("run-trials", args=[world.run.pk]),
    "run-rerun": lambda world: f"{reverse('run-new')}?again={world.run.pk}",
    "trial": lambda world: reverse("trial", args=[_trial(world)]),
    "artifact": lambda world: reverse("trial-artifact", args=[_trial(world), "tool.json"]),
    "host": lambda world: reverse("host", args=[world.host.pk]),
    "benchmark": lambda _: reverse("benchmark", args=["server", "hello"]),
    "compare": _compare,
    "compare of one run": lambda world: f"{_compare(world)}&run={world.run.pk}",
    "history": lambda _: f"{reverse('history')}?benchmark=server/hello",
}


@pytest.mark.parametrize("name", [*LISTS, *FORMS])
def test_pages_of_the_team_are_shown_to_owner_and_team_mate(
    name: str, world: World, alice: Client, bob: Client
) -> None:
    assert alice.get(reverse(name)).status_code == 200
    assert bob.get(reverse(name)).status_code == 200


@pytest.mark.parametrize("name", OWNED)
def test_objects_of_the_team_are_shown_to_owner_and_team_mate(
    name: str, world: World, alice: Client, bob: Client
) -> None:
    assert alice.get(OWNED[name](world)).status_code == 200
    assert bob.get(OWNED[name](world)).status_code == 200


@pytest.mark.parametrize("name", OWNED)
def test_a_stranger_gets_not_found(name: str, world: World, mallory: Client) -> None:
    answer = mallory.get(OWNED[name](world))

    assert answer.status_code == 404
    assert "Hello" not in answer.content.decode()


@pytest.mark.parametrize("name", LISTS)
def test_a_stranger_sees_nothing_of_the_team(name: str, world: World, mallory: Client) -> None:
    page = mallory.get(reverse(name)).content.decode()

    assert "Hello" not in page
    assert world.shas[0][:10] not in page
    assert "alice" not in page


@pytest.mark.parametrize("name", [*LISTS, *FORMS, "host-new"])
def test_a_visitor_is_redirected_to_the_login(name: str, db: None, client: Client) -> None:
    answer = client.get(reverse(name))

    assert answer.status_code == 302
    assert answer.headers["Location"].startswith(reverse("login"))


@pytest.mark.parametrize("name", OWNED)
def test_a_visitor_is_redirected_before_any_query(name: str, world: World, client: Client) -> None:
    answer = client.get(OWNED[name](world))

    assert answer.status_code == 302
    assert answer.headers["Location"].startswith(reverse("login"))


def test_a_live_page_reloads_after_a_logout(world: World, client: Client) -> None:
    answer = client.get(OWNED["run-progress"](world), HTTP_HX_REQUEST="true")

    assert answer.headers["HX-Refresh"] == "true"
    assert answer.content == b""


def test_a_user_logs_in_and_out(personas: object, client: Client) -> None:
    wrong = client.post(reverse("login"), {"username": "alice", "password": "wrong"})
    assert "correct username and password" in wrong.content.decode()
    right = client.post(reverse("login"), {"username": "alice", "password": PASSWORD})
    assert right.headers["Location"] == reverse("overview")
    client.post(reverse("logout"))
    assert client.get(reverse("overview")).status_code == 302


def test_a_user_without_a_team_gets_instructions(db: None, client: Client) -> None:
    client.force_login(User.objects.create_user(username="eve", password="a long one"))
    answer = client.get(reverse("overview"))

    assert answer.status_code == 403
    assert "ask a maintainer or owner of the team for an invitation" in answer.content.decode()
    assert "Log out" in answer.content.decode()


def test_an_old_session_ends(alice: Client) -> None:
    assert alice.get(reverse("runs")).status_code == 200
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    answer = alice.get(reverse("runs"))
    assert answer.headers["Location"] == f"{reverse('login')}?next={reverse('runs')}"


def test_a_logout_elsewhere_ends_the_session(alice: Client) -> None:
    copied = Client()
    copied.cookies["sessionid"] = alice.cookies["sessionid"].value
    assert copied.get(reverse("runs")).status_code == 200
    alice.post(reverse("logout"))
    assert copied.get(reverse("runs")).status_code == 302
