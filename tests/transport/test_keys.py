import base64

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa

from orchestrator.core.errors import InvalidRequestError
from orchestrator.transport.address import HostKey
from orchestrator.transport.keys import generate_key, parse_private_key
from orchestrator.transport.ssh import SshTransport
from tests.support.sshd import SshServer

OPENSSH = serialization.PrivateFormat.OpenSSH
PKCS8 = serialization.PrivateFormat.PKCS8
PKCS1 = serialization.PrivateFormat.TraditionalOpenSSL

# A public host key and what `ssh-keygen -l` says of it.
KNOWN_LINE = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
KNOWN_FINGERPRINT = "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"


def export_key(key, form=OPENSSH, passphrase: str | None = None) -> str:
    encryption = (
        serialization.BestAvailableEncryption(passphrase.encode())
        if passphrase
        else serialization.NoEncryption()
    )
    return key.private_bytes(serialization.Encoding.PEM, form, encryption).decode()


def test_each_generated_ed25519_key_is_new() -> None:
    first, second = generate_key(), generate_key()
    assert first.public_openssh.startswith("ssh-ed25519 ")
    assert first.fingerprint != second.fingerprint
    assert parse_private_key(first.private_openssh).fingerprint == first.fingerprint


def test_fingerprints_match_ssh_keygen() -> None:
    assert HostKey.parse(KNOWN_LINE).fingerprint_sha256 == KNOWN_FINGERPRINT


@pytest.mark.parametrize("form", [OPENSSH, PKCS8])
@pytest.mark.parametrize("passphrase", [None, "open sesame"])
def test_keys_of_both_formats_are_read_with_and_without_passphrase(form, passphrase) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    pair = parse_private_key(export_key(key, form, passphrase), passphrase)
    assert pair.public_openssh == parse_private_key(export_key(key)).public_openssh
    assert parse_private_key(pair.private_openssh).fingerprint == pair.fingerprint


def test_an_unneeded_passphrase_is_ignored() -> None:
    pair = generate_key()
    assert parse_private_key(pair.private_openssh, "not needed").fingerprint == pair.fingerprint


def test_a_key_with_windows_line_ends_and_blanks_is_read() -> None:
    pair = generate_key()
    pasted = "\r\n " + pair.private_openssh.replace("\n", "\r\n") + "\r\n"
    assert parse_private_key(pasted).fingerprint == pair.fingerprint


@pytest.mark.parametrize(
    "key",
    [
        ed25519.Ed25519PrivateKey.generate(),
        rsa.generate_private_key(65537, 2048),
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP384R1()),
        ec.generate_private_key(ec.SECP521R1()),
    ],
    ids=["ed25519", "rsa", "p256", "p384", "p521"],
)
def test_every_supported_key_type_is_offered(server: SshServer, key) -> None:
    """A refusal for the stranger's key, and not an error of our own."""
    pair = parse_private_key(export_key(key))
    with pytest.raises(Exception, match="refused to log in") as caught:
        SshTransport(server.address(private_key=pair.private_openssh))
    assert pair.public_openssh in str(caught.value)


@pytest.mark.parametrize(
    ("text", "passphrase", "message", "field"),
    [
        ("", None, "not a private key file", "private_key"),
        ("hello", None, "not a private key file", "private_key"),
        ("schlüssel 🔑", None, "not a private key file", "private_key"),
        (KNOWN_LINE, None, "This is a public key", "private_key"),
        (generate_key().private_openssh[:120], None, "cannot be read", "private_key"),
        (
            export_key(rsa.generate_private_key(65537, 1024), PKCS1),
            None,
            "RSA key has 1024 bits",
            "private_key",
        ),
        (
            export_key(ed448.Ed448PrivateKey.generate(), PKCS8),
            None,
            "Keys of the type .* are not supported; use ed25519",
            "private_key",
        ),
        (
            export_key(ec.generate_private_key(ec.SECP256K1()), PKCS8),
            None,
            "not supported .*secp256k1.*; use ed25519",
            "private_key",
        ),
    ],
)
def test_an_invalid_key_is_reported(text, passphrase, message, field) -> None:
    with pytest.raises(InvalidRequestError, match=message) as caught:
        parse_private_key(text, passphrase)
    assert caught.value.field == field


@pytest.mark.parametrize("form", [OPENSSH, PKCS8])
@pytest.mark.parametrize(
    ("passphrase", "message"),
    [(None, "encrypted; give its passphrase"), ("", "give its"), ("wrong", "check the passphrase")],
)
def test_a_wrong_passphrase_is_reported(form, passphrase, message) -> None:
    text = export_key(ed25519.Ed25519PrivateKey.generate(), form, "right")
    with pytest.raises(InvalidRequestError, match=message) as caught:
        parse_private_key(text, passphrase)
    assert caught.value.field == "passphrase"


@pytest.mark.parametrize(
    "line",
    [
        "",
        "ssh-ed25519",
        "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
        KNOWN_LINE.replace("ssh-ed25519", "ssh-rsa"),
        "ssh-ed25519 " + base64.b64encode(b"something else").decode(),
        KNOWN_LINE + "\n" + KNOWN_LINE,
    ],
)
def test_an_invalid_host_key_line_is_refused(line: str) -> None:
    with pytest.raises(InvalidRequestError, match="one line such as"):
        HostKey.parse(line)


def test_a_host_key_with_a_comment_is_accepted() -> None:
    assert HostKey.parse(f" {KNOWN_LINE} root@host \n").line == KNOWN_LINE
