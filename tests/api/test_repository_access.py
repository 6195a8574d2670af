"""The same by the API."""

from typing import Any

from orchestrator.benchmarks.models import Project, RepositoryAccess
from orchestrator.transport.keys import generate_key

PATH = "projects/server/repository-access"


def test_keys_and_tokens_are_set_and_never_shown(alice: Any, bob: Any, mallory: Any) -> None:
    Project.objects.update(repository_url="git@github.com:ada/server.git")
    assert alice.get(PATH).json()["credential"] == "none"
    made = alice.post(f"{PATH}/deploy-key").json()
    assert made["credential"] == "deploy_key"
    assert made["public_key"].startswith("ssh-ed25519 ")
    assert made["changed_by"] == "alice"
    assert bob.get(PATH).json() == made
    assert bob.post(f"{PATH}/deploy-key").status_code == 403
    assert mallory.get(PATH).status_code == 404
    assert alice.put(f"{PATH}/token", {"token": "t"}).status_code == 422

    Project.objects.update(repository_url="https://github.com/ada/server.git")
    saved = alice.put(f"{PATH}/token", {"token": "ghp_s3cret", "username": "bot"})
    assert "s3cret" not in saved.content.decode()
    assert (saved.json()["credential"], saved.json()["username"]) == ("token", "bot")
    assert saved.json()["public_key"] is None
    assert alice.put(f"{PATH}/token", {"token": "a b"}).status_code == 422
    assert alice.delete(PATH).status_code == 204
    assert alice.get(PATH).json()["credential"] == "none"


def test_a_new_host_key_is_accepted_by_its_fingerprint(alice: Any) -> None:
    pairs = [generate_key(), generate_key()]
    RepositoryAccess.objects.create(
        project=Project.objects.get(slug="server"),
        host_key=pairs[0].public_openssh,
        offered_host_key=pairs[1].public_openssh,
    )
    assert alice.get(PATH).json()["offered_host_key"] == pairs[1].fingerprint
    wrong = alice.post(f"{PATH}/host-key", {"fingerprint": pairs[0].fingerprint})
    assert wrong.status_code == 409
    right = alice.post(f"{PATH}/host-key", {"fingerprint": pairs[1].fingerprint}).json()
    assert (right["host_key"], right["offered_host_key"]) == (pairs[1].fingerprint, None)


def test_an_offered_host_key_is_declined_and_the_pinned_one_forgotten(alice: Any, bob: Any) -> None:
    pairs = [generate_key(), generate_key()]
    row = RepositoryAccess.objects.create(
        project=Project.objects.get(slug="server"),
        host_key=pairs[0].public_openssh,
        offered_host_key=pairs[1].public_openssh,
    )
    assert bob.delete(f"{PATH}/offered-host-key").status_code == 403
    kept = alice.delete(f"{PATH}/offered-host-key").json()
    assert (kept["host_key"], kept["offered_host_key"]) == (pairs[0].fingerprint, None)
    assert alice.delete(f"{PATH}/offered-host-key").status_code == 409
    assert bob.delete(f"{PATH}/host-key").status_code == 403
    assert alice.delete(f"{PATH}/host-key").json()["host_key"] is None
    assert alice.delete(f"{PATH}/host-key").status_code == 409
    row.refresh_from_db()
    assert row.was_host_key_forgotten
