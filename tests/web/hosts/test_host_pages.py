"""Adding a host over SSH, and what its page shows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.fleet.models import Credential, Host
from orchestrator.fleet.services import add_credential, save_profile
from tests.support.factories import Personas
from tests.support.html_pages import element, elements, field_error, get_text, values
from tests.support.sshd import SshServer, start_sshd
from tests.support.world import World


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    with start_sshd(tmp_path) as running:
        yield running


def _data(server: SshServer, **changes: Any) -> dict[str, Any]:
    given = {
        "name": "rack-1",
        "profile": "any",
        "address": server.host,
        "port": str(server.port),
        "login": server.user,
        "key_source": "paste",
        "private_key": server.client_private_key,
    }
    return {**given, **changes}


@pytest.fixture
def _profile(personas: Personas) -> None:
    save_profile(member=personas.alice, slug="any", name="Any machine")


@pytest.mark.usefixtures("_profile")
def test_a_stored_key_is_used(server: SshServer, alice: Client, personas: Personas) -> None:
    stored = add_credential(member=personas.alice, name="team key")
    data = _data(server, key_source="stored", credential=str(stored.pk), private_key="")
    alice.post(reverse("host-new"), {**data, "run_as": "bench"})

    host = Host.objects.get(name="rack-1")
    assert (host.credential, host.run_as) == (stored, "bench")
    assert "bench" in map(get_text, elements(alice.get(reverse("host", args=[host.pk])), "code"))


def test_a_host_is_added_without_a_profile(
    server: SshServer, alice: Client, personas: Personas
) -> None:
    form = alice.get(reverse("host-new"))
    assert [get_text(each) for each in elements(form, "select[name=profile] option")] == ["Detect"]
    answer = alice.post(reverse("host-new"), _data(server, profile=""))
    host = Host.objects.get(name="rack-1")

    assert answer.headers["Location"] == reverse("host-checks", args=[host.pk])
    assert (host.profile.is_pending, host.profile.team) == (True, personas.alice.team)
    save_profile(member=personas.mallory, slug="theirs", name="Theirs")
    refused = alice.post(reverse("host-new"), _data(server, name="rack-2", profile="theirs"))
    assert "theirs is not one of the available choices" in field_error(refused, "profile")


@pytest.mark.usefixtures("_profile")
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", "Rack 1", "Expected lower-case letters, digits and dashes"),
        ("address", "-oProxyCommand=x", "Expected a host name or an IP address"),
        ("login", "root; id", "Expected a user name of the host"),
        ("run_as", "root", "must not run as root"),
        ("port", "0", "greater than or equal to 1"),
        ("private_key", "ssh-ed25519 AAAA", "This is a public key"),
        ("private_key", "", "Required for the selected option"),
    ],
)
def test_an_error_is_shown_at_its_field(
    field: str, value: str, words: str, server: SshServer, alice: Client
) -> None:
    answer = alice.post(reverse("host-new"), _data(server, **{field: value}))

    assert answer.status_code == 422
    assert words in field_error(answer, field)
    assert not Host.objects.exists()


@pytest.mark.usefixtures("_profile")
def test_the_generated_key_is_kept_when_the_name_is_taken(server: SshServer, alice: Client) -> None:
    """The key made meanwhile is chosen for another try."""
    alice.post(reverse("host-new"), _data(server, key_source="generate", private_key=""))
    Credential.objects.update(name="another")
    data = _data(server, key_source="generate", private_key="")
    answer = alice.post(reverse("host-new"), data)
    page = answer.content.decode()
    credential = Credential.objects.get(name="rack-1 key")

    assert answer.status_code == 422
    assert str(credential.pk) in values(page, "option[selected]")
    assert credential.public_key.strip() in page
    assert "already has a host named rack-1" in page


@pytest.mark.usefixtures("_profile")
def test_a_pasted_key_is_never_sent_back(server: SshServer, alice: Client) -> None:
    for changes in ({"port": "1"}, {"name": ""}):
        page = alice.post(reverse("host-new"), _data(server, **changes)).content.decode()
        assert "PRIVATE KEY" not in page


@pytest.mark.usefixtures("_profile")
def test_only_admins_add_hosts(server: SshServer, bob: Client) -> None:
    assert bob.get(reverse("host-new")).status_code == 403
    assert bob.post(reverse("host-new"), _data(server)).status_code == 403
    assert not Host.objects.exists()


def test_facts_of_the_host_are_shown(world: World, alice: Client) -> None:
    page = alice.get(reverse("host", args=[world.host.pk])).content.decode()

    assert "Test CPU" in page
    assert reverse("run", args=[world.run.pk]) in page


def test_a_removed_host_keeps_its_results(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    address = reverse("host-remove", args=[world.host.pk])
    assert mallory.post(address).status_code == 404
    assert bob.post(address).status_code == 403
    assert alice.post(address).headers["Location"] == reverse("hosts")
    world.host.refresh_from_db()
    assert world.host.state == "retired"


def test_a_profile_is_added(personas: Personas, alice: Client, bob: Client) -> None:
    data = {"slug": "t490s", "name": "ThinkPad T490s", "memory_gib": "16", "cores": "4"}
    assert alice.post(reverse("profiles"), data).headers["Location"] == reverse("profiles")
    profile = personas.alice.team.profiles.get()
    assert (profile.memory_bytes, profile.cores, profile.threads) == (16 * 1024**3, 4, None)
    assert bob.post(reverse("profiles"), {**data, "slug": "other"}).status_code == 403
    wrong = alice.post(reverse("profiles"), {**data, "slug": "Not a slug"})
    assert wrong.status_code == 422
    assert "Expected lower-case letters" in wrong.content.decode()
    both = alice.post(reverse("profiles"), {"slug": "Not a slug", "name": ""})
    assert "Expected lower-case letters" in field_error(both, "slug")
    assert "This field is required" in field_error(both, "name")


def test_a_profile_keeps_its_short_name_and_the_exact_size_of_its_memory(
    personas: Personas, alice: Client
) -> None:
    save_profile(
        member=personas.alice, slug="t490s", name="T490s", memory_bytes=16_614_424_576, cores=4
    )
    edit = f"{reverse('profiles')}?profile=t490s"
    page = alice.get(edit)
    assert "disabled" in element(page, "#id_slug").attrs
    data = {"name": "ThinkPad", "memory_gib": "15.47", "cores": "8", "slug": "other"}
    assert "“ThinkPad” was saved" in get_text(alice.post(edit, data, follow=True))
    profile = personas.alice.team.profiles.get()
    assert (profile.slug, profile.name, profile.cores) == ("t490s", "ThinkPad", 8)
    assert profile.memory_bytes == 16_614_424_576
    alice.post(edit, {**data, "memory_gib": "32"})
    profile.refresh_from_db()
    assert profile.memory_bytes == 32 * 1024**3
    taken = alice.post(reverse("profiles"), {**data, "slug": "t490s"})
    assert "There is already a profile t490s" in field_error(taken, "slug")
    profile.refresh_from_db()
    assert profile.name == "ThinkPad"


def test_only_a_profile_without_hosts_is_deleted(
    world: World, alice: Client, bob: Client, mallory: Client
) -> None:
    save_profile(member=world.alice, slug="spare", name="Spare")
    used, spare = (reverse("profile-delete", args=[slug]) for slug in ("any", "spare"))
    links = values(alice.get(reverse("profiles")), "a[data-confirm]", "href")
    assert (used in links, spare in links) == (False, True)
    assert "Hosts 1 here" in get_text(alice.get(used))
    refused = alice.post(used)
    assert refused.status_code == 409
    assert "Hosts have the profile any: here" in refused.content.decode()
    for client, status in ((bob, 403), (mallory, 404)):
        assert client.get(spare).status_code == status
        assert client.post(spare).status_code == status
    assert "“Spare” was deleted" in get_text(alice.post(spare, follow=True))
    assert [each.slug for each in world.alice.team.profiles.all()] == ["any"]
