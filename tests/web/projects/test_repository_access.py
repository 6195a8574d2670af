"""The page and the API of a repository's credential and host key."""

import pytest
from django.test import Client

from orchestrator.accounts.models import AuditEntry
from orchestrator.benchmarks.models import Project, RepositoryAccess
from orchestrator.transport.address import HostKey
from orchestrator.transport.keys import generate_key
from tests.support.html_pages import get_text, values
from tests.support.world import World

PAGE = "/projects/server/access"


@pytest.fixture
def project(world: World) -> Project:
    project = Project.objects.get(slug="server")
    Project.objects.update(repository_url="git@github.com:ada/server.git")
    project.refresh_from_db()
    return project


def test_a_maintainer_generates_a_key_and_everybody_sees_the_public_key(
    project: Project, alice: Client, bob: Client, mallory: Client
) -> None:
    assert "Generate a deploy key" in alice.get(PAGE).content.decode()
    assert alice.post(f"{PAGE}/key").status_code == 302
    row = RepositoryAccess.objects.get(project=project)
    for client in (alice, bob):
        page = client.get(PAGE).content.decode()
        assert row.public_key.split()[1] in page
        assert "PRIVATE KEY" not in page
    assert bob.post(f"{PAGE}/key").status_code == 403
    assert mallory.get(PAGE).status_code == 404
    assert AuditEntry.objects.filter(action="repository.deploy_key_generated").count() == 1
    alice.post(f"{PAGE}/remove")
    row.refresh_from_db()
    assert (row.kind, row.public_key) == ("none", "")


def test_a_token_is_stored_and_never_shown(
    project: Project, alice: Client, bob: Client, mallory: Client
) -> None:
    Project.objects.update(repository_url="https://github.com/ada/server.git")
    wrong = alice.post(PAGE, {"token": "two words"})
    assert wrong.status_code == 422
    assert alice.post(PAGE, {"token": "ghp_s3cret", "username": "bot"}).status_code == 302
    page = alice.get(PAGE).content.decode()
    assert "Replace the token" in page
    assert "s3cret" not in page
    assert b"s3cret" not in bytes(RepositoryAccess.objects.get().sealed_token or b"")


def test_a_changed_host_key_is_shown_and_accepted(
    project: Project, alice: Client, bob: Client, mallory: Client
) -> None:
    keys = [HostKey.parse(generate_key().public_openssh) for _ in range(2)]
    RepositoryAccess.objects.create(
        project=project, host_key=keys[0].line, offered_host_key=keys[1].line
    )
    page = alice.get(PAGE)
    assert all(key.fingerprint_sha256 in get_text(page) for key in keys)
    assert values(page, "input[name=fingerprint]") == [keys[1].fingerprint_sha256]
    wrong = alice.post(f"{PAGE}/host-key", {"fingerprint": keys[0].fingerprint_sha256})
    assert wrong.status_code == 409
    sent = {"fingerprint": keys[1].fingerprint_sha256}
    assert bob.post(f"{PAGE}/host-key", sent).status_code == 403
    assert alice.post(f"{PAGE}/host-key", sent).status_code == 302
    assert RepositoryAccess.objects.get().host_key == keys[1].line
