"""Secrets that Pitwall makes, shows once and never again.

Of those that it only has to recognise it keeps the digest: a hash without salt will do, since
nobody guesses 256 random bits. Those that it signs with are sealed by whoever keeps them.
"""

import re
import secrets
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.core.ids import sha256_hex


class Kind(StrEnum):
    """What a secret begins with, so that people and scanners know one that lies about."""

    API_TOKEN = "pw"
    INVITATION = "pwi"
    SETUP = "pwsetup"
    SHARED_LINK = "pws"
    FORGE_WEBHOOK = "pwforge"
    CHANNEL_WEBHOOK = "pwhook"


@dataclass(frozen=True, slots=True)
class NewSecret:
    """`text` is for whoever gets it, `digest` and `beginning` are what may be kept."""

    text: str = field(repr=False)

    @property
    def digest(self) -> str:
        return digest_of_secret(self.text)

    @property
    def beginning(self) -> str:
        """The prefix and five characters more, by which people tell theirs apart."""
        return self.text[: self.text.index("_") + 6]


def new_secret(kind: Kind) -> NewSecret:
    """256 random bits behind the prefix of the kind, such as `pw_…`."""
    return NewSecret(f"{kind}_{secrets.token_urlsafe(32)}")


def digest_of_secret(text: str) -> str:
    """By which the row of a secret that somebody shows is found; `text` may be anything."""
    return sha256_hex(text.encode())


#: A secret of any kind, also where a link lost its last characters, or where a mail program encoded
#: the `_`.
_SECRET = re.compile(
    rf"({'|'.join(sorted(Kind, key=len, reverse=True))})(?:_|%5[Ff])(?:[A-Za-z0-9_-]|%5[Ff]){{20,}}"
)
#: What an identity provider gave somebody for a log-in: it is in the address that it leads back to.
_LOG_IN = re.compile(r"\bcode=[^\s&\"']{8,}")


def redact_secrets(text: str) -> str:
    """`text` with the kind of each of our secrets in it and nothing more, such as `pwi_REDACTED`.

    For logs: secrets of invitations and shared links are parts of addresses. So are the codes
    of an identity provider (`code=REDACTED`).
    """
    return _LOG_IN.sub("code=REDACTED", _SECRET.sub(r"\1_REDACTED", text))


def has_secret(text: str) -> bool:
    return _SECRET.search(text) is not None
