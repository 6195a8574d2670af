"""Secrets that Pitwall creates and shows once.

If Pitwall only has to recognise a secret, it stores the digest. A hash without salt is enough,
since nobody can guess 256 random bits. Secrets that Pitwall signs with are sealed instead.
"""

import re
import secrets
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.core.ids import sha256_hex


class Kind(StrEnum):
    """The prefix of a secret, so that people and secret scanners recognise it."""

    API_TOKEN = "pw"
    INVITATION = "pwi"
    SETUP = "pwsetup"
    SHARED_LINK = "pws"
    FORGE_WEBHOOK = "pwforge"
    CHANNEL_WEBHOOK = "pwhook"


@dataclass(frozen=True, slots=True)
class NewSecret:
    """`text` is for the recipient; `digest` and `beginning` may be stored."""

    text: str = field(repr=False)

    @property
    def digest(self) -> str:
        return hash_secret(self.text)

    @property
    def beginning(self) -> str:
        """The prefix and five more characters, so that people recognise their secrets."""
        return self.text[: self.text.index("_") + 6]


def new_secret(kind: Kind) -> NewSecret:
    """Return 256 random bits behind the prefix of the kind, such as `pw_…`."""
    return NewSecret(f"{kind}_{secrets.token_urlsafe(32)}")


def hash_secret(text: str) -> str:
    """Return the digest that identifies the row of a secret; `text` may be anything."""
    return sha256_hex(text.encode())


#: A secret of any kind, also from a link that lost its last characters or whose `_` a mail program
#: encoded.
_SECRET = re.compile(
    rf"({'|'.join(sorted(Kind, key=len, reverse=True))})(?:_|%5[Ff])(?:[A-Za-z0-9_-]|%5[Ff]){{20,}}"
)
#: The code of an identity provider for a login, which is in the redirect address.
_LOG_IN = re.compile(r"\bcode=[^\s&\"']{8,}")


def redact_secrets(text: str) -> str:
    """Return `text` with each secret of ours replaced by its kind, such as `pwi_REDACTED`.

    It is for logs: addresses contain secrets of invitations and shared links, and codes of an
    identity provider (`code=REDACTED`).
    """
    return _LOG_IN.sub("code=REDACTED", _SECRET.sub(r"\1_REDACTED", text))


def has_secret(text: str) -> bool:
    return _SECRET.search(text) is not None
