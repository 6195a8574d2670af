"""User certificates of SSH, signed by an authority of the tests."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    SSHCertificateBuilder,
    SSHCertificateType,
)

AUTHORITY = ed25519.Ed25519PrivateKey.generate()
_FORM = (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
#: The line for `TrustedUserCAKeys`.
AUTHORITY_LINE = AUTHORITY.public_key().public_bytes(*_FORM).decode()
Build = Callable[[SSHCertificateBuilder], SSHCertificateBuilder]


def sign(
    public_openssh: str,
    user: str,
    *,
    days: float = 1,
    since: timedelta = timedelta(days=-2),
    type_: SSHCertificateType = SSHCertificateType.USER,
    build: Build = lambda made: made,
) -> str:
    """Return a certificate of the key for a user, as `ssh-keygen -s` writes it.

    It is valid from `since` from now until `days` from now.
    """
    public = serialization.load_ssh_public_key(public_openssh.encode())
    assert isinstance(
        public, ed25519.Ed25519PublicKey | rsa.RSAPublicKey | ec.EllipticCurvePublicKey
    )
    now = datetime.now(UTC)
    made = (
        SSHCertificateBuilder()
        .public_key(public)
        .serial(7)
        .type(type_)
        .key_id(b"pitwall")
        .valid_principals([user.encode()])
        .valid_after(int((now + since).timestamp()))
        .valid_before(int((now + timedelta(days=days)).timestamp()))
        # For jump hosts; `ssh-keygen` adds it by default.
        .add_extension(b"permit-port-forwarding", b"")
    )
    return build(made).sign(AUTHORITY).public_bytes().decode()
