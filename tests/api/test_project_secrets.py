"""Secrets of a project by the API."""

from typing import Any

import pytest

from orchestrator.accounts.models import AuditEntry
from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.project_secrets import open_secrets

PATH = "projects/server/secrets"
VALUE = "sk_test_51Habc"


def test_secrets_are_set_listed_and_deleted_and_never_shown(
    alice: Any, bob: Any, mallory: Any
) -> None:
    assert alice.get(PATH).json() == {"secrets": []}
    made = alice.put(f"{PATH}/STRIPE_KEY", {"value": VALUE})
    assert made.status_code == 200
    assert (made.json()["version"], made.json()["changed_by"]) == (1, "alice")
    assert alice.put(f"{PATH}/STRIPE_KEY", {"value": VALUE + "2"}).json()["version"] == 2
    (listed,) = alice.get(PATH).json()["secrets"]
    assert listed["name"] == "STRIPE_KEY"
    assert listed["last_used_at"] is None
    assert alice.get(f"{PATH}/STRIPE_KEY").json() == listed
    for answer in (made, alice.get(PATH), alice.get(f"{PATH}/STRIPE_KEY")):
        assert VALUE not in answer.content.decode()
    project = Project.objects.get(slug="server")
    assert open_secrets(project, ["STRIPE_KEY"]).values == {"STRIPE_KEY": VALUE + "2"}
    for path in (PATH, f"{PATH}/STRIPE_KEY"):
        assert (bob.get(path).status_code, mallory.get(path).status_code) == (403, 404)
    assert bob.put(f"{PATH}/STRIPE_KEY", {"value": VALUE}).status_code == 403
    assert bob.delete(f"{PATH}/STRIPE_KEY").status_code == 403
    assert mallory.put(f"{PATH}/STRIPE_KEY", {"value": VALUE}).status_code == 404
    assert mallory.delete(f"{PATH}/STRIPE_KEY").status_code == 404
    assert alice.delete(f"{PATH}/STRIPE_KEY").status_code == 204
    assert alice.delete(f"{PATH}/STRIPE_KEY").status_code == 404
    assert alice.get(PATH).json() == {"secrets": []}
    assert AuditEntry.objects.filter(action="secret.deleted").count() == 1


@pytest.mark.parametrize(
    ("name", "body", "field"),
    [
        ("KEY", {"value": "short"}, "value"),
        ("KEY", {"value": "x" * 8193}, "value"),
        ("KEY", {}, "value"),
        ("KEY", {"value": "nul \0 in it"}, "value"),
        ("1KEY", {"value": VALUE}, "name"),
    ],
)
def test_a_wrong_secret_is_refused_with_its_field(
    alice: Any, name: str, body: dict[str, str], field: str
) -> None:
    answer = alice.put(f"{PATH}/{name}", body)
    assert answer.status_code == 422
    assert field in answer.json()["field"]
    assert alice.get(PATH).json() == {"secrets": []}


def test_the_secret_of_a_plan_is_named_if_it_is_missing(alice: Any) -> None:
    source = alice.get("benchmarks/server/hello/definitions/1").json()["source"]
    changed = source.replace("subject:\n", "subject:\n  env: {T: {secret: STRIPE_KEY}}\n", 1)
    saved = alice.post("benchmarks/server/hello/definitions", {"source": changed})
    assert saved.status_code == 201, saved.content
    answer = alice.post(
        "runs/plan", {"benchmark": "hello", "contenders": ["main"], "hosts": ["here"]}
    )
    assert answer.status_code == 422
    assert "names STRIPE_KEY, which is no secret of the project server" in answer.json()["detail"]
