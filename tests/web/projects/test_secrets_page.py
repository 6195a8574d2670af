"""Pages of a project's secrets."""

from typing import Any

import pytest
from django.test import Client

from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.project_secrets import load_secrets, open_secrets
from tests.support.world import World

VALUE = "sk_test_51Habc"
PAGE = "/projects/server/secrets/"


@pytest.fixture
def project(world: World) -> Project:
    return Project.objects.get(slug="server")


def test_a_secret_is_added_replaced_and_deleted(alice: Client, project: Project) -> None:
    form = {"name": "STRIPE_KEY", "value": "line one\r\nline two\r\n"}
    added = alice.post(PAGE, form, follow=True)
    assert "STRIPE_KEY" in added.content.decode()
    # As a program on a host expects it, not as browsers send it.
    assert open_secrets(project, ["STRIPE_KEY"]).values["STRIPE_KEY"] == "line one\nline two\n"
    again = alice.post(PAGE, {"name": "STRIPE_KEY", "value": VALUE})
    assert again.status_code == 422
    assert "There is a secret STRIPE_KEY already" in again.content.decode()
    replaced = alice.post(f"{PAGE}STRIPE_KEY/", {"value": VALUE}, follow=True)
    assert "The value of STRIPE_KEY was replaced." in replaced.content.decode()
    assert open_secrets(project, ["STRIPE_KEY"]).versions == {"STRIPE_KEY": 2}
    for page in (added, again, replaced, alice.get(f"{PAGE}STRIPE_KEY/"), alice.get(PAGE)):
        assert VALUE not in page.content.decode()
        assert "line one" not in page.content.decode()
    question = alice.get(f"{PAGE}STRIPE_KEY/delete")
    assert "Delete the secret STRIPE_KEY?" in question.content.decode()
    assert load_secrets(project).count() == 1
    alice.post(f"{PAGE}STRIPE_KEY/delete")
    assert load_secrets(project).count() == 0


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"name": "STRIPE_KEY", "value": "short"}, "expected at least 8 characters"),
        ({"name": "stripe-key", "value": VALUE}, "expected 1 to 64 letters"),
        ({"name": "", "value": VALUE}, "required"),
    ],
)
def test_a_refused_value_is_not_shown_again(
    alice: Client, project: Project, form: dict[str, str], message: str
) -> None:
    page = alice.post(PAGE, form)
    assert page.status_code == 422
    assert message.lower() in page.content.decode().lower()
    assert f">{form['value']}" not in page.content.decode()
    assert not load_secrets(project).exists()


def test_pages_are_for_maintainers_of_the_team(
    project: Project, alice: Client, bob: Client, mallory: Client
) -> None:
    alice.post(PAGE, {"name": "STRIPE_KEY", "value": VALUE})
    paths = (PAGE, f"{PAGE}STRIPE_KEY/", f"{PAGE}STRIPE_KEY/delete")
    for client, status in ((bob, 403), (mallory, 404)):
        for path in paths:
            answers: list[Any] = [client.get(path), client.post(path, {"value": "another value"})]
            assert [each.status_code for each in answers] == [status, status], path
    assert open_secrets(project, ["STRIPE_KEY"]).values == {"STRIPE_KEY": VALUE}
    link = f'href="{PAGE}"'
    assert link in alice.get("/projects/server/").content.decode()
    assert link not in bob.get("/projects/server/").content.decode()
