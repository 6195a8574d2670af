"""Secrets at rest: sealed with the keys that the environment names.

`PITWALL_SEALING_KEYS` has the keys, the newest first; without it there is one, made from
`PITWALL_SECRET_KEY`. A column of sealed bytes is named `sealed_…`: `rotate_secrets` finds it so.
A sealed value opens only in the column and row that it was sealed for.
"""

from collections.abc import Iterable
from functools import lru_cache

from django.conf import settings
from django.db.models import Model

from orchestrator.core.errors import BrokenSealError
from orchestrator.core.sealing import SECRET_KEY_ID, Keyring, how_to_add, id_of

#: In place of the id of a key: the value was sealed before keys had ids.
UNNAMED = "unnamed"
#: Where second factors are: allauth seals them without saying for which row.
SECOND_FACTORS = "mfa.Authenticator.data"


def seal(row: Model, column: str, text: str) -> bytes:
    """What to store in that column of that row, which has its primary key already."""
    return keyring().seal(text, place_of(row, column))


def unseal(row: Model, column: str) -> str:
    """What is sealed in that column, which is not null; BrokenSealError where it does not open."""
    return keyring().unseal(bytes(getattr(row, column)), place_of(row, column))


def place_of(row: Model, column: str) -> str:
    if row.pk is None:
        raise ValueError(f"{row._meta.label} has no primary key yet: a secret is sealed for a row")
    return f"{row._meta.label}.{column}:{row.pk}"


def seal_text(text: str, place: str) -> str:
    """The same for values within JSON, for a place that is no row."""
    return keyring().seal(text, place).decode()


def unseal_text(sealed: str, place: str) -> str:
    return keyring().unseal(sealed.encode(), place)


def missing_keys(key_ids: Iterable[str]) -> list[str]:
    """For each key that we do not have, what to do so that we have it."""
    if not settings.SECRET_KEY_IS_GIVEN:
        return ["set PITWALL_SECRET_KEY to the one of the installation that sealed them"]
    ring = keyring()
    return [
        f"{key_id}: {how_to_add(None if key_id == UNNAMED else key_id)}"
        for key_id in key_ids
        if key_id not in ring
    ]


def keyring() -> Keyring:
    if not settings.SECRET_KEY_IS_GIVEN:
        raise BrokenSealError("set PITWALL_SECRET_KEY: secrets at rest are sealed with it")
    secret_keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return _keyring(tuple(settings.SEALING_KEYS), *secret_keys)


@lru_cache(maxsize=4)
def _keyring(named: tuple[tuple[str, str], ...], *secret_keys: str) -> Keyring:
    """The named keys, then the one of the secret key, then those of its predecessors."""
    made = {f"{SECRET_KEY_ID}{id_of(secret)}": secret for secret in secret_keys}
    return Keyring({**dict(named), **made})
