"""Secrets at rest: sealed with the keys that the environment names.

`PITWALL_SEALING_KEYS` has the keys, the newest first; without it there is one, made from
`PITWALL_SECRET_KEY`. A column of sealed bytes is named `sealed_…`: `rotate_secrets` finds it so.
"""

from functools import lru_cache

from django.conf import settings

from orchestrator.core.errors import BrokenSealError
from orchestrator.core.sealing import Keyring, id_of


def seal(text: str) -> bytes:
    return keyring().seal(text)


def unseal(sealed: bytes | memoryview) -> str:
    """The sealed text; BrokenSealError where none of our keys opens it."""
    return keyring().unseal(bytes(sealed))


def seal_text(text: str) -> str:
    """The same for columns of text and for values within JSON."""
    return seal(text).decode()


def unseal_text(sealed: str) -> str:
    return unseal(sealed.encode())


def keyring() -> Keyring:
    if not settings.SECRET_KEY_IS_GIVEN:
        raise BrokenSealError("set PITWALL_SECRET_KEY: secrets at rest are sealed with it")
    secret_keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return _keyring(tuple(settings.SEALING_KEYS), *secret_keys)


@lru_cache(maxsize=4)
def _keyring(named: tuple[tuple[str, str], ...], *secret_keys: str) -> Keyring:
    """The named keys, then the one of the secret key, then those of its predecessors."""
    made = {f"secret-key-{id_of(secret)}": secret for secret in secret_keys}
    return Keyring({**dict(named), **made})
