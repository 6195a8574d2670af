"""Logins with a key that an authority has signed, on real SSH servers that trust only it."""

import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import SSHCertificateType

from orchestrator.core.errors import InvalidRequestError, LoginRefusedError
from orchestrator.transport.address import JumpHost
from orchestrator.transport.certificates import CertificateTimeError, UserCertificate
from orchestrator.transport.keys import generate_key, parse_private_key
from orchestrator.transport.reach import reach_ssh_server
from orchestrator.transport.ssh import SshTransport
from tests.support.programs import program
from tests.support.ssh_certificates import AUTHORITY_LINE, sign
from tests.support.sshd import LOOPBACK, SshServer, start_sshd


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """A server that trusts the authority, and no longer the key of its client."""
    program("sshd")
    folder = tmp_path_factory.mktemp("ssh")
    with start_sshd(folder, "sshd") as running:
        trusted = folder / "ssh-server" / "authority.pub"
        trusted.write_text(f"{AUTHORITY_LINE}\n")
        (config,) = (folder / "ssh-server").glob("*config*")
        config.write_text(f"{config.read_text()}\nTrustedUserCAKeys {trusted}\n")
        (folder / "ssh-server" / "authorized_keys").write_text("")
        running.stop()
        running.start()
        yield running


def test_a_certificate_logs_in_where_the_key_alone_does_not(server: SshServer) -> None:
    own = generate_key()
    address = server.address(private_key=own.private_openssh)
    with pytest.raises(LoginRefusedError, match="authorized_keys"):
        SshTransport(address)
    certificate = sign(own.public_openssh, server.user)
    address = server.address(private_key=own.private_openssh, certificate=certificate)
    with SshTransport(address) as transport:
        assert transport.run(["echo", "in"], timeout_s=10).stdout == b"in\n"
    # Also through a jump host.
    jump = JumpHost(user=server.user, host="127.0.0.1", port=server.port, host_key=server.host_key)
    reached = reach_ssh_server(
        server.host,
        server.port,
        20,
        networks=LOOPBACK,
        jumps=[jump],
        private_key=own.private_openssh,
        certificate=certificate,
    )
    assert reached.server.startswith("SSH-2.0-")


def test_a_refused_certificate_is_named_with_what_it_says(server: SshServer) -> None:
    own = generate_key()
    certificate = sign(own.public_openssh, "somebody-else")
    address = server.address(private_key=own.private_openssh, certificate=certificate)
    with pytest.raises(LoginRefusedError) as caught:
        SshTransport(address)
    assert "for somebody-else, valid from" in str(caught.value)
    assert "TrustedUserCAKeys" in str(caught.value)


@pytest.mark.parametrize("times", [{"days": -1}, {"days": 9, "since": timedelta(days=8)}])
def test_a_certificate_that_is_not_valid_now_is_not_sent(
    server: SshServer, times: dict[str, Any]
) -> None:
    own = generate_key()
    certificate = sign(own.public_openssh, server.user, **times)
    address = server.address(private_key=own.private_openssh, certificate=certificate)
    with pytest.raises(CertificateTimeError, match="is not valid now, but for") as caught:
        SshTransport(address)
    # Its hosts are only absent, so they are used again with a new one.
    assert caught.value.transient


@pytest.mark.parametrize(
    "generate",
    [
        lambda: ec.generate_private_key(ec.SECP384R1()),
        lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
    ],
    ids=["ecdsa", "rsa"],
)
def test_certificates_of_other_keys_log_in(
    server: SshServer,
    generate: Callable[[], ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey],
) -> None:
    key = generate()
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    pem = key.private_bytes(*form, serialization.NoEncryption()).decode()
    own = parse_private_key(pem)
    certificate = sign(own.public_openssh, server.user)
    SshTransport(server.address(private_key=pem, certificate=certificate)).close()


def test_a_certificate_of_openssh_is_read(tmp_path: Path) -> None:
    keygen = program("ssh-keygen")
    for name in ("authority", "own"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    subprocess.run(
        [keygen, "-q", "-s", "authority", "-I", "pitwall", "-n", "bench,root", "own.pub"],
        cwd=tmp_path,
        check=True,
    )
    public = " ".join((tmp_path / "own.pub").read_text().split()[:2])
    certificate = UserCertificate.parse((tmp_path / "own-cert.pub").read_text(), public)
    assert certificate.principals == ("bench", "root")
    assert (certificate.key_id, certificate.valid_until) == ("pitwall", None)
    certificate.require_valid(datetime.now(UTC) + timedelta(days=20_000))


def _break_signature(line: str) -> str:
    kind, blob = line.split()
    return f"{kind} {blob[:-12]}AAAA{blob[-8:]}"


OWN = generate_key()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "cannot be read"),
        ("ssh-ed25519-cert-v01@openssh.com AAAA", "cannot be read"),
        (OWN.public_openssh, "is a public key, not its certificate"),
        (sign(generate_key().public_openssh, "a"), "certificate of another key"),
        (
            sign(OWN.public_openssh, "a", type_=SSHCertificateType.HOST),
            "certificate of a host",
        ),
        (_break_signature(sign(OWN.public_openssh, "a")), "signature"),
        (
            sign(
                OWN.public_openssh,
                "a",
                build=lambda made: made.add_critical_option(b"force-command", b"ls"),
            ),
            "forces a command",
        ),
    ],
    ids=["text", "type", "public key", "other key", "host", "signature", "option"],
)
def test_what_is_no_certificate_of_the_key_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words) as caught:
        UserCertificate.parse(text, OWN.public_openssh)
    assert caught.value.field == "certificate"
