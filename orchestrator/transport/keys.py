"""Keys to log in with: generated here, or uploaded by a user."""

from dataclasses import dataclass, field

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from orchestrator.core.errors import InvalidRequestError
from orchestrator.transport.address import HostKey

SupportedKey = ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

_MIN_RSA_BITS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A private key as unencrypted OpenSSH PEM, its public line, and the fingerprint `SHA256:…`."""

    private_openssh: str = field(repr=False)
    public_openssh: str
    fingerprint: str


def generate_key() -> KeyPair:
    """Return a new ed25519 key."""
    return _build_pair(ed25519.Ed25519PrivateKey.generate())


def parse_private_key(text: str, passphrase: str | None = None) -> KeyPair:
    """Parse a private key file: OpenSSH or PEM; ed25519, ECDSA or RSA from 2048 bits.

    A passphrase that the file does not need is ignored. Raise InvalidRequestError, with `field`
    `private_key` or `passphrase`, if the file is malformed or its type is not supported. Raise it
    also if the file is encrypted and the passphrase is missing or wrong.
    """
    data = text.replace("\r\n", "\n").strip().encode() + b"\n"
    _check_looks_private(data)
    key = _load(data, passphrase)
    if not isinstance(key, SupportedKey):
        raise _build_key_error(
            f"Keys of the type {type(key).__name__} are not supported; use ed25519."
        )
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size < _MIN_RSA_BITS:
        raise _build_key_error(
            f"The RSA key has {key.key_size} bits; use ed25519, or RSA of 2048 or more."
        )
    try:
        return _build_pair(key)
    except ValueError as error:
        raise _build_key_error(
            f"The private key is not supported ({error}); use ed25519."
        ) from error


def _check_looks_private(data: bytes) -> None:
    if data.startswith((b"ssh-", b"ecdsa-")):
        raise _build_key_error(
            "This is a public key; the private one is in the file without '.pub'."
        )
    if not (data.startswith(b"-----BEGIN ") and b"PRIVATE KEY-----" in data):
        raise _build_key_error(
            "This is not a private key file: it must start with '-----BEGIN … PRIVATE KEY-----'."
        )


def _load(data: bytes, passphrase: str | None) -> object:
    is_openssh = data.startswith(b"-----BEGIN OPENSSH")
    load = serialization.load_ssh_private_key if is_openssh else serialization.load_pem_private_key
    try:
        return load(data, password=None)
    except TypeError as error:
        if not passphrase:
            message = "The private key is encrypted; give its passphrase."
            raise InvalidRequestError(message, field="passphrase") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _build_key_error(
            f"The private key cannot be read ({error}). Paste the whole file."
        ) from error
    try:
        return load(data, password=passphrase.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        message = "The private key cannot be decrypted; check the passphrase."
        raise InvalidRequestError(message, field="passphrase") from error


def _build_key_error(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, field="private_key")


def _build_pair(key: SupportedKey) -> KeyPair:
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    line = public.decode()
    return KeyPair(
        private_openssh=private.decode(),
        public_openssh=line,
        fingerprint=HostKey.parse(line).fingerprint_sha256,
    )
