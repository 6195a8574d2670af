"""Sealing of secrets at rest, with keys that have names, so that they can be changed.

A sealed text is `pw1:<key id>:<Fernet token>` (AES-128-CBC with HMAC-SHA256). What was sealed
before keys had names is the token alone; it is opened with whichever key fits.
"""

import base64
from collections.abc import Mapping

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from orchestrator.core.errors import BrokenSealError
from orchestrator.core.ids import sha256_hex

_PREFIX = b"pw1"


class Keyring:
    """Seals with the first of `secrets` (key id → secret) and opens with any of them.

    ValueError where there is none.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        if not secrets:
            raise ValueError("there is no key to seal with")
        self._fernets = {name: _fernet(secret) for name, secret in secrets.items()}
        self.newest = next(iter(secrets))

    def seal(self, text: str) -> bytes:
        token = self._fernets[self.newest].encrypt(text.encode())
        return b":".join((_PREFIX, self.newest.encode(), token))

    def unseal(self, sealed: bytes) -> str:
        """The sealed text; BrokenSealError where no key opens it, which never shows the text."""
        name, token = _parts(sealed)
        if name is not None and name not in self._fernets:
            raise BrokenSealError(
                f"a stored secret cannot be opened: it is sealed with the key {name}, which "
                "PITWALL_SEALING_KEYS does not name; add that key again, behind the newest"
            )
        tried = self._fernets.values() if name is None else (self._fernets[name],)
        for fernet in tried:
            try:
                return fernet.decrypt(token).decode()
            except InvalidToken:
                continue
        raise BrokenSealError(
            "a stored secret cannot be opened: PITWALL_SECRET_KEY or PITWALL_SEALING_KEYS are not "
            "those it was sealed with; restore them, or enter the secret again"
        )

    def is_current(self, sealed: bytes) -> bool:
        """Whether it is sealed with the newest key; what it holds is not looked at."""
        return _parts(sealed)[0] == self.newest


def key_of(sealed: bytes) -> str | None:
    """The id of the key that it says it is sealed with; None of old."""
    return _parts(sealed)[0]


def id_of(secret: str) -> str:
    """Eight hexadecimal digits that tell secrets apart and say nothing of them."""
    return sha256_hex(b"pitwall id of a key " + secret.encode())[:8]


def _parts(sealed: bytes) -> tuple[str | None, bytes]:
    prefix, _, rest = sealed.partition(b":")
    if prefix != _PREFIX:
        return None, sealed
    name, _, token = rest.partition(b":")
    return name.decode(errors="replace"), token


def _fernet(secret: str) -> Fernet:
    derived = HKDF(
        algorithm=hashes.SHA256(), length=32, salt=None, info=b"pitwall credential vault"
    ).derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
