"""User certificates of SSH: our key, signed by an authority that hosts trust.

Hosts decide whether they accept one. Here it is only checked that a certificate can work.
"""

import base64
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import SSHCertificate, SSHCertificateType

from orchestrator.core.errors import InvalidRequestError, UnreachableError
from orchestrator.transport.address import HostKey

#: The time of certificates without an end, and a later one than any `datetime`.
_FOREVER = 2**63
_OPENSSH = (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
#: With it, a host runs another program than the agent.
_FORCED_COMMAND = b"force-command"


class CertificateTimeError(UnreachableError):
    """Our certificate is not valid now. The hosts can be used again with another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCertificate:
    """A certificate as one line, and what it says.

    `principals`: the users that it may log in as; empty: any. `authority`: the fingerprint of the
    key that signed it. `valid_until` is None if it has no end.
    """

    line: str
    key_id: str
    principals: tuple[str, ...]
    authority: str
    valid_from: datetime
    valid_until: datetime | None

    @classmethod
    def parse(cls, text: str, public_openssh: str) -> Self:
        """Parse the content of a file such as `id_ed25519-cert.pub`, for this public key.

        Raise InvalidRequestError, with the field `certificate`, if it is no valid user certificate
        of the key. An expired one is accepted.
        """
        words = text.split()
        certificate = _load(" ".join(words[:2]))
        if certificate.type != SSHCertificateType.USER:
            raise _build_error("This is the certificate of a host; sign the key for users.")
        if certificate.public_key().public_bytes(*_OPENSSH).decode() != public_openssh:
            raise _build_error("This is the certificate of another key; sign the key of the host.")
        try:
            certificate.verify_cert_signature()
        except (InvalidSignature, UnsupportedAlgorithm) as error:
            raise _build_error("The signature of the certificate is not valid.") from error
        if _FORCED_COMMAND in certificate.critical_options:
            raise _build_error(
                "The certificate forces a command (force-command), so the agent could not run."
            )
        return cls(
            line=" ".join(words[:2]),
            key_id=certificate.key_id.decode(errors="replace"),
            principals=tuple(
                name.decode(errors="replace") for name in certificate.valid_principals
            ),
            authority=_compute_fingerprint(certificate),
            valid_from=_convert(certificate.valid_after) or datetime.max.replace(tzinfo=UTC),
            valid_until=_convert(certificate.valid_before),
        )

    @property
    def blob(self) -> bytes:
        """The certificate in SSH's binary form."""
        return base64.b64decode(self.line.split()[1])

    def require_valid(self, now: datetime) -> None:
        """Raise CertificateTimeError before its start and after its end."""
        if now < self.valid_from or (self.valid_until is not None and self.valid_until <= now):
            raise CertificateTimeError(
                f"The certificate of our key is not valid now, but {self.describe()}. Add another "
                "one below the SSH settings of the host."
            )

    def describe(self) -> str:
        """Return whom it may log in as and until when, for messages."""
        users = ", ".join(self.principals) or "any user"
        until = f" until {self.valid_until:%Y-%m-%d %H:%M} UTC" if self.valid_until else ""
        return f"for {users}, valid from {self.valid_from:%Y-%m-%d %H:%M} UTC{until}"


def _load(line: str) -> SSHCertificate:
    try:
        certificate = serialization.load_ssh_public_identity(line.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _build_error(
            f"The certificate cannot be read ({error}). Paste the whole line of the file with "
            "'-cert.pub'."
        ) from error
    if not isinstance(certificate, SSHCertificate):
        raise _build_error("This is a public key, not its certificate ('-cert.pub').")
    return certificate


def _convert(seconds: int) -> datetime | None:
    """Return the time; None if it is later than any."""
    if seconds >= _FOREVER:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _compute_fingerprint(certificate: SSHCertificate) -> str:
    key = certificate.signature_key().public_bytes(*_OPENSSH).decode()
    return HostKey.parse(key).fingerprint_sha256


def _build_error(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, field="certificate")
