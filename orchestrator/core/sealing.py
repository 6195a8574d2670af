"""Sealing of secrets at rest with named keys, so that keys can be changed.

A sealed text is `pw2:<key id>:<Fernet token>` (AES-128-CBC with HMAC-SHA256). The Fernet key is
derived from the secret and from the place where the value is stored. A value that is copied to
another place therefore does not open there. Older values are not bound to a place: `pw1:` has the
key's id, and a bare token is opened with whichever key fits.
"""

import base64
from collections.abc import Mapping

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from orchestrator.core.errors import BrokenSealError
from orchestrator.core.ids import sha256_hex

_BOUND, _UNBOUND = b"pw2", b"pw1"
_INFO = b"pitwall credential vault"
#: Ids of keys that are derived from a PITWALL_SECRET_KEY start with this.
SECRET_KEY_ID = "secret-key-"


class Keyring:
    """Seals with the first of `secrets` (key id → secret) and opens with any of them.

    Raises ValueError if there is none.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        if not secrets:
            raise ValueError("there is no key to seal with")
        self._secrets = dict(secrets)
        self.newest = next(iter(secrets))

    def __contains__(self, key_id: str) -> bool:
        return key_id in self._secrets

    def seal(self, text: str, place: str) -> bytes:
        """Seal a text.

        `place` names the column and the row; the same place opens the value again.
        """
        token = _derive_fernet(self._secrets[self.newest], place).encrypt(text.encode())
        return b":".join((_BOUND, self.newest.encode(), token))

    def unseal(self, sealed: bytes, place: str) -> str:
        """Return the sealed text. Raise BrokenSealError, without the text, if it does not open."""
        form, name, token = _split_seal(sealed)
        if name is not None and name not in self._secrets:
            raise BrokenSealError(
                f"a stored secret cannot be decrypted: it is sealed with the key {name}, which is "
                f"missing; {explain_missing_key(name)}, or enter the secret again"
            )
        tried = self._secrets.values() if name is None else (self._secrets[name],)
        for secret in tried:
            try:
                return (
                    _derive_fernet(secret, place if form == _BOUND else "").decrypt(token).decode()
                )
            except InvalidToken:
                continue
        if name is None:
            raise BrokenSealError(
                f"a stored secret cannot be decrypted: no key fits; "
                f"{explain_missing_key(None)}, or enter "
                "the secret again"
            )
        raise BrokenSealError(
            f"a stored secret cannot be decrypted: the key {name} has another secret than the one "
            "it was sealed with, or the value was damaged or copied here from another row; correct "
            "the key, or enter the secret again"
        )

    def is_current(self, sealed: bytes) -> bool:
        """Return whether it is sealed with the newest key and for one place, without opening it."""
        form, name, _ = _split_seal(sealed)
        return form == _BOUND and name == self.newest


def read_key_id(sealed: bytes) -> str | None:
    """Return the id of the key that the sealed text names; None if it has an old form."""
    return _split_seal(sealed)[1]


def explain_missing_key(key_id: str | None) -> str:
    """Return which variable takes the missing key with this id.

    None means that the text was sealed before keys had ids. PITWALL_SEALING_KEYS does not accept
    the id of a key that is derived from a PITWALL_SECRET_KEY.
    """
    if key_id is None or key_id.startswith(SECRET_KEY_ID):
        return "add the former PITWALL_SECRET_KEY to PITWALL_SECRET_KEY_FALLBACKS"
    return f"add {key_id}:SECRET, with its secret, to the end of PITWALL_SEALING_KEYS"


def compute_key_id(secret: str) -> str:
    """Return eight hexadecimal digits that distinguish secrets and reveal nothing about them."""
    return sha256_hex(b"pitwall id of a key " + secret.encode())[:8]


def _split_seal(sealed: bytes) -> tuple[bytes, str | None, bytes]:
    """Return the form, the id of the key and the token."""
    form, _, rest = sealed.partition(b":")
    if form not in (_BOUND, _UNBOUND):
        return b"", None, sealed
    name, _, token = rest.partition(b":")
    return form, name.decode(errors="replace"), token


def _derive_fernet(secret: str, place: str) -> Fernet:
    """Return the cipher. `place`: empty for values that are not bound to one."""
    info = _INFO + (b" for " + place.encode() if place else b"")
    derived = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=info).derive(
        secret.encode()
    )
    return Fernet(base64.urlsafe_b64encode(derived))
