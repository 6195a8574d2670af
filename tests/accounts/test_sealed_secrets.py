"""Secrets at rest are sealed with named keys, which are changed by a command."""

from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import call_command
from django.core.management.base import CommandError

from orchestrator.accounts import sealed_columns, vault
from orchestrator.alerts.models import Channel
from orchestrator.config import variables
from orchestrator.core import sealing
from orchestrator.core.errors import BrokenSealError, HostSetupError
from orchestrator.core.sealing import Keyring
from orchestrator.fleet.models import Credential
from orchestrator.fleet.services import add_credential
from orchestrator.fleet.vault import unseal as unseal_for_host
from tests.support.factories import Personas

SSH = "sealed_private_key"
OLD, NEW = ("2025", "o" * 40), ("2026", "n" * 40)


def rotate(*args: str) -> str:
    out = StringIO()
    call_command("rotate_secrets", *args, stdout=out, stderr=out)
    return out.getvalue()


def _totp(secret: str) -> str:
    return vault.seal_text(secret, vault.SECOND_FACTORS)


def list_private_keys(credentials: Any) -> list[str]:
    return [bytes(each.sealed_private_key).split(b":")[1].decode() for each in credentials]


@pytest.fixture
def credentials(personas: Personas, settings: Any) -> Any:
    """Three keys of a team, one sealed before keys had names, and a second factor."""
    settings.SEALING_KEYS = [OLD]
    for name in "abc":
        add_credential(member=personas.alice, name=name)
    first = Credential.objects.order_by("pk")[0]
    text = vault.unseal(first, "sealed_private_key")
    # As Pitwall sealed before keys had ids.
    unnamed = sealing._derive_fernet(settings.SECRET_KEY, "").encrypt(text.encode())
    Credential.objects.filter(pk=first.pk).update(sealed_private_key=unnamed)
    Authenticator.objects.create(
        user=personas.alice.user, type="totp", data={"secret": _totp("TOTP"), "n": 1}
    )
    return Credential.objects.order_by("pk")


def test_the_newest_key_reseals_all_secrets_in_batches_and_only_once(
    credentials: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed_columns, "_BATCH", 2)
    before = [vault.unseal(each, SSH) for each in credentials]
    settings.SEALING_KEYS = [NEW, OLD]
    assert "3 rows (2 by 2025, 1 by unnamed)" in rotate("--dry-run")
    assert list_private_keys(credentials.all()[1:]) == ["2025", "2025"]
    output = rotate()
    assert "fleet.Credential.sealed_private_key: 2 rows, 2 encrypted again" in output
    assert "fleet.Credential.sealed_private_key: 3 rows, 3 encrypted again" in output
    assert list_private_keys(credentials.all()) == ["2026"] * 3
    assert "3 rows (3 by 2026)" in rotate()
    settings.SEALING_KEYS = [NEW]
    assert [vault.unseal(each, SSH) for each in credentials.all()] == before
    stored = Authenticator.objects.get().data
    assert (vault.unseal_text(stored["secret"], vault.SECOND_FACTORS), stored["n"]) == ("TOTP", 1)


def test_reseal_reports_secrets_that_no_key_opens_and_continues(
    credentials: Any, settings: Any
) -> None:
    lost = credentials[1]
    Credential.objects.filter(pk=lost.pk).update(
        sealed_private_key=Keyring({"2019": "x" * 40}).seal("secret", "x")
    )
    settings.SEALING_KEYS = [NEW, OLD]
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 4 rows cannot be decrypted"):
        call_command("rotate_secrets", stdout=out, stderr=out)
    assert f"{lost.pk}: a stored secret cannot be decrypted: it is sealed with the key 2019" in (
        out.getvalue()
    )
    assert list_private_keys(credentials.all()) == ["2026", "2019", "2026"]
    with pytest.raises(HostSetupError, match="2019"):
        unseal_for_host(credentials.get(pk=lost.pk), SSH)


def test_a_value_that_was_copied_to_another_row_or_column_does_not_open(
    personas: Personas,
) -> None:
    """Otherwise write access to the database would let a host of red use blue's key, or leak it."""
    theirs = add_credential(member=personas.mallory, name="key of blue")
    ours = add_credential(member=personas.alice, name="key of red")
    assert vault.unseal(theirs, SSH)
    Credential.objects.filter(pk=ours.pk).update(sealed_private_key=theirs.sealed_private_key)
    ours.refresh_from_db()
    with pytest.raises(HostSetupError, match="copied here from another row") as refused:
        unseal_for_host(ours, SSH)
    assert "PRIVATE KEY" not in str(refused.value)
    channel = Channel(sealed_url=theirs.sealed_private_key)
    with pytest.raises(BrokenSealError, match="copied here"):
        vault.unseal(channel, "sealed_url")
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 2 rows cannot be decrypted"):
        call_command("rotate_secrets", stdout=out, stderr=out)
    assert str(ours.pk) in out.getvalue()


def test_a_secret_sealed_without_a_row_opens_and_is_bound_to_its_row(
    personas: Personas, settings: Any
) -> None:
    row = add_credential(member=personas.alice, name="old")
    ring = vault.get_keyring()
    before = b"pw1:%s:%s" % (
        ring.newest.encode(),
        sealing._derive_fernet(settings.SECRET_KEY, "").encrypt(b"as it was"),
    )
    Credential.objects.filter(pk=row.pk).update(sealed_private_key=before)
    row.refresh_from_db()
    assert vault.unseal(row, SSH) == "as it was"
    assert "1 rows, 1 encrypted again" in rotate()
    row.refresh_from_db()
    assert bytes(row.sealed_private_key).startswith(b"pw2:")
    assert vault.unseal(row, SSH) == "as it was"


def test_another_secret_key_opens_what_its_predecessor_sealed(settings: Any) -> None:
    sealed = vault.seal_text("text", "here")
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "z" * 50
    assert vault.unseal_text(sealed, "here") == "text"
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(BrokenSealError, match="PITWALL_SECRET_KEY_FALLBACKS") as broken:
        vault.unseal_text(sealed, "here")
    assert "text" not in str(broken.value)


@pytest.mark.parametrize("given", ["a", "a:short", f"A:{'x' * 32}", f"a:{'x' * 32},a:{'y' * 32}"])
def test_an_invalid_key_is_refused_at_the_start(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITWALL_SEALING_KEYS", given)
    with pytest.raises(ValueError, match="PITWALL_SEALING_KEYS") as refused:
        variables.read_named_keys("PITWALL_SEALING_KEYS")
    assert "xxxx" not in str(refused.value)


def test_sealed_columns_are_found_by_their_name() -> None:
    known = {str(column) for column in sealed_columns.list_sealed_columns()}
    assert {
        "fleet.Credential.sealed_private_key",
        "runs.Job.tls",
        "mfa.Authenticator.data",
    } <= known
