"""The page that asks before a destructive action, and what each of these actions says."""

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.memberships import remove_member
from orchestrator.accounts.models import ApiToken, Role
from orchestrator.accounts.selectors import load_token_member
from orchestrator.accounts.services import create_token
from orchestrator.benchmarks.models import ShareLink
from orchestrator.runs.models import Schedule
from tests.support.factories import add_member, make_nightly_schedule
from tests.support.html_pages import element, elements, get_text, values
from tests.support.world import World
from tests.web.conftest import signed_in


@pytest.fixture
def schedule(world: World) -> Schedule:
    return make_nightly_schedule(world.alice)


def test_the_first_press_only_asks(
    schedule: Schedule, alice: Client, bob: Client, mallory: Client
) -> None:
    address = reverse("schedule-delete", args=[schedule.pk])
    assert address in values(alice.get(reverse("schedules")), "a[data-confirm]", "href")
    assert address not in bob.get(reverse("schedules")).content.decode()

    page = alice.get(address)

    assert get_text(element(page, "h1")) == "Delete the schedule “nightly”?"
    assert "runs that it has started remain" in get_text(page)
    form = element(page, "#confirmation")
    assert (form["method"], form["action"]) == ("post", address)
    assert get_text(element(page, "#confirmation button")) == "Delete schedule"
    assert values(page, "a[data-cancel]", "href") == [reverse("schedules")]
    assert bob.get(address).status_code == 403
    assert mallory.get(address).status_code == 404
    assert alice.put(address).status_code == 405
    assert Schedule.objects.exists()
    answer = alice.post(address, follow=True)
    assert "The schedule “nightly” was deleted." in get_text(answer)
    assert not Schedule.objects.exists()
    assert alice.get(address).status_code == 404


def test_a_token_names_the_tokens_that_end_with_it(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    first = create_token(member=world.alice, name="CI")
    second = create_token(member=load_token_member(first.secret), name="job")
    create_token(member=load_token_member(second.secret), name="step")
    address = reverse("token-revoke", args=[first.token.pk])

    page = get_text(alice.get(address))

    assert "Revoke the API token “CI”?" in page
    assert "Tokens that were created with it are revoked too: 2." in page
    assert bob.get(address).status_code == 403
    assert mallory.get(address).status_code == 404
    assert not ApiToken.objects.exclude(revoked_at=None).exists()
    assert "“CI” was revoked" in get_text(alice.post(address, follow=True))
    assert not ApiToken.objects.filter(revoked_at=None).exists()


def test_a_removed_member_and_a_team_left_are_confirmed(world: World, alice: Client) -> None:
    carol = add_member(world.alice, "carol", Role.MEMBER)
    address = reverse("member-remove", args=["carol"])
    assert "Remove carol from Red?" in get_text(alice.get(address))
    assert signed_in(carol).get(address).status_code == 403
    assert "Leave Red?" in get_text(signed_in(carol).get(reverse("team-leave")))
    remove_member(member=world.alice, username="carol")
    assert alice.get(address).status_code == 404


def test_each_secret_has_a_button_that_copies_it(world: World, alice: Client) -> None:
    made = alice.post(reverse("settings"), {"name": "CI", "scopes": ["read"]})
    invited = alice.post(reverse("invitation-new"), {"role": "viewer", "days": "7"})
    page = f"/runs/{world.queue_run().pk}/"
    shared = alice.post(reverse("share-new"), {"page": page, "days": "7"})
    assert ShareLink.objects.exists()

    for answer in (made, invited, shared):
        (target,) = values(answer, "button[data-copy]", "data-copy")
        assert len(get_text(element(answer, f"#{target}.secret"))) > 30
    badges = alice.get(reverse("project-badges", args=["server"]))
    targets = values(badges, "button[data-copy]", "data-copy")
    assert len(targets) == len(elements(badges, "textarea[readonly]")) >= 2
    assert set(targets) == set(values(badges, "textarea[readonly]", "id"))
