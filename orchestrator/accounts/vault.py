"""Secrets at rest, sealed with the keys in the environment.

`PITWALL_SEALING_KEYS` has the keys, the newest first; without it there is one, derived from
`PITWALL_SECRET_KEY`. The name of a column of sealed bytes begins with `sealed_`, so that
`rotate_secrets` finds it. A sealed value can be opened only for the column and row that it was
sealed for.
"""

from collections.abc import Iterable
from functools import lru_cache

from django.conf import settings
from django.db.models import Model

from orchestrator.core.errors import BrokenSealError
from orchestrator.core.sealing import SECRET_KEY_ID, Keyring, compute_key_id, explain_missing_key

#: The key id of values that were sealed before keys had ids.
UNNAMED = "unnamed"
#: The place of second factors: allauth seals them without naming the row.
SECOND_FACTORS = "mfa.Authenticator.data"


def seal(row: Model, column: str, text: str) -> bytes:
    """Seal a value for a column of a row, which must have its primary key already."""
    return get_keyring().seal(text, build_seal_context(row, column))


def unseal(row: Model, column: str) -> str:
    """Open the value of a column, which is not null; BrokenSealError if no key opens it."""
    return get_keyring().unseal(bytes(getattr(row, column)), build_seal_context(row, column))


def build_seal_context(row: Model, column: str) -> str:
    if row.pk is None:
        raise ValueError(f"{row._meta.label} has no primary key yet: a secret is sealed for a row")
    return f"{row._meta.label}.{column}:{row.pk}"


def seal_text(text: str, place: str) -> str:
    """Seal a value within JSON, for a place that is not a row."""
    return get_keyring().seal(text, place).decode()


def unseal_text(sealed: str, place: str) -> str:
    return get_keyring().unseal(sealed.encode(), place)


def describe_missing(key_ids: Iterable[str]) -> list[str]:
    """Return for each missing key how to add it."""
    if not settings.SECRET_KEY_IS_GIVEN:
        return ["set PITWALL_SECRET_KEY to the one of the installation that sealed them"]
    ring = get_keyring()
    return [
        f"{key_id}: {explain_missing_key(None if key_id == UNNAMED else key_id)}"
        for key_id in key_ids
        if key_id not in ring
    ]


def get_keyring() -> Keyring:
    if not settings.SECRET_KEY_IS_GIVEN:
        raise BrokenSealError("set PITWALL_SECRET_KEY: secrets at rest are sealed with it")
    secret_keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return _build_keyring(tuple(settings.SEALING_KEYS), *secret_keys)


@lru_cache(maxsize=4)
def _build_keyring(named: tuple[tuple[str, str], ...], *secret_keys: str) -> Keyring:
    """Return the named keys, then the key of the secret key, then those of its predecessors."""
    made = {f"{SECRET_KEY_ID}{compute_key_id(secret)}": secret for secret in secret_keys}
    return Keyring({**dict(named), **made})
