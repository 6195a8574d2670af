"""Secrets at rest are sealed with named keys, which are changed by a command."""

from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import call_command
from django.core.management.base import CommandError

from orchestrator.accounts import sealed_columns, vault
from orchestrator.config import environment
from orchestrator.core.errors import BrokenSealError, HostSetupError
from orchestrator.core.sealing import Keyring
from orchestrator.fleet.models import Credential
from orchestrator.fleet.services import add_credential
from orchestrator.fleet.vault import unseal as unseal_for_host
from tests.support.factories import Personas

OLD, NEW = ("2025", "o" * 40), ("2026", "n" * 40)


def rotate(*args: str) -> str:
    out = StringIO()
    call_command("rotate_secrets", *args, stdout=out, stderr=out)
    return out.getvalue()


def keys_of(credentials: Any) -> list[str]:
    return [bytes(each.sealed_private_key).split(b":")[1].decode() for each in credentials]


@pytest.fixture
def credentials(personas: Personas, settings: Any) -> Any:
    """Three keys of a team, one sealed before keys had names, and a second factor."""
    settings.SEALING_KEYS = [OLD]
    for name in "abc":
        add_credential(member=personas.alice, name=name)
    first = Credential.objects.order_by("pk")[0]
    text = vault.unseal(first.sealed_private_key)
    unnamed = Keyring({"any": settings.SECRET_KEY}).seal(text).split(b":", 2)[2]
    Credential.objects.filter(pk=first.pk).update(sealed_private_key=unnamed)
    Authenticator.objects.create(
        user=personas.alice.user, type="totp", data={"secret": vault.seal_text("TOTP"), "n": 1}
    )
    return Credential.objects.order_by("pk")


def test_the_newest_key_seals_all_anew_in_batches_and_only_once(
    credentials: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed_columns, "_BATCH", 2)
    before = [vault.unseal(each.sealed_private_key) for each in credentials]
    settings.SEALING_KEYS = [NEW, OLD]
    assert "3 rows (2 by 2025, 1 by unnamed)" in rotate("--dry-run")
    assert keys_of(credentials.all()[1:]) == ["2025", "2025"]
    said = rotate()
    assert "fleet.Credential.sealed_private_key: 2 rows, 2 sealed anew" in said
    assert "fleet.Credential.sealed_private_key: 3 rows, 3 sealed anew" in said
    assert keys_of(credentials.all()) == ["2026"] * 3
    assert "3 rows (3 by 2026)" in rotate()
    settings.SEALING_KEYS = [NEW]
    assert [vault.unseal(each.sealed_private_key) for each in credentials.all()] == before
    stored = Authenticator.objects.get().data
    assert (vault.unseal_text(stored["secret"]), stored["n"]) == ("TOTP", 1)


def test_it_says_what_cannot_be_opened_and_goes_on(credentials: Any, settings: Any) -> None:
    lost = credentials[1]
    Credential.objects.filter(pk=lost.pk).update(
        sealed_private_key=Keyring({"2019": "x" * 40}).seal("secret")
    )
    settings.SEALING_KEYS = [NEW, OLD]
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 4 rows cannot be opened"):
        call_command("rotate_secrets", stdout=out, stderr=out)
    assert f"{lost.pk}: a stored secret cannot be opened: it is sealed with the key 2019" in (
        out.getvalue()
    )
    assert keys_of(credentials.all()) == ["2026", "2019", "2026"]
    with pytest.raises(HostSetupError, match="2019"):
        unseal_for_host(credentials.get(pk=lost.pk).sealed_private_key)


def test_another_secret_key_opens_what_its_predecessor_sealed(settings: Any) -> None:
    sealed = vault.seal("text")
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "z" * 50
    assert vault.unseal(sealed) == "text"
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(BrokenSealError, match="PITWALL_SEALING_KEYS") as broken:
        vault.unseal(sealed)
    assert "text" not in str(broken.value)


@pytest.mark.parametrize("given", ["a", "a:short", f"A:{'x' * 32}", f"a:{'x' * 32},a:{'y' * 32}"])
def test_a_key_that_is_none_is_refused_at_the_start(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITWALL_SEALING_KEYS", given)
    with pytest.raises(ValueError, match="PITWALL_SEALING_KEYS") as refused:
        environment.named_keys("PITWALL_SEALING_KEYS")
    assert "xxxx" not in str(refused.value)


def test_columns_that_are_named_sealed_are_found_by_themselves() -> None:
    known = {str(column) for column in sealed_columns.sealed_columns()}
    assert {
        "fleet.Credential.sealed_private_key",
        "runs.Job.tls",
        "mfa.Authenticator.data",
    } <= known
