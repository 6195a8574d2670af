"""A job's own certificates: real handshakes, by address and by name."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from orchestrator.benchmarks.spec import Spec, from_data
from orchestrator.dispatch.tls import Certificates, make_certificates, needs_tls
from tests.support.programs import tool

NOW = datetime.now(tz=UTC)


def made(*addresses: str, now: datetime = NOW) -> Certificates:
    return make_certificates(addresses, now=now)


@contextmanager
def served(certificates: Certificates, folder: Path) -> Iterator[int]:
    """The port of a TLS server with these certificates that greets everybody."""
    (folder / "cert.pem").write_text(certificates.cert)
    (folder / "key.pem").write_text(certificates.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_greet, args=(listening, context), daemon=True).start()
        yield listening.getsockname()[1]


def _greet(listening: socket.socket, context: ssl.SSLContext) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        try:
            with context.wrap_socket(connection, server_side=True) as guarded:
                guarded.sendall(b"hello")
        except OSError:
            connection.close()


def fetch_over_tls(port: int, name: str, ca: str) -> bytes:
    """What the server on this machine says to a client that trusts `ca` and looks for `name`."""
    context = ssl.create_default_context(cadata=ca)
    # The default of Python 3.13 and newer; stricter than OpenSSL is by itself.
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=name) as guarded,
    ):
        return guarded.recv(5)


@pytest.mark.parametrize(
    "name", ["10.9.0.2", "fd00::7", "bench-2.example.org", "127.0.0.1", "::1", "localhost"]
)
def test_certificate_covers_every_address_of_the_job(tmp_path: Path, name: str) -> None:
    certificates = made("10.9.0.2", "[fd00::7]", "bench-2.example.org", "127.0.0.1")
    with served(certificates, tmp_path) as port:
        assert fetch_over_tls(port, name, certificates.ca) == b"hello"


@pytest.mark.parametrize("name", ["10.9.0.3", "other.example.org"])
def test_certificate_covers_no_other_address(tmp_path: Path, name: str) -> None:
    certificates = made("10.9.0.2", "bench-2.example.org")
    with (
        served(certificates, tmp_path) as port,
        pytest.raises(ssl.SSLCertVerificationError, match=r"mismatch|not valid for"),
    ):
        fetch_over_tls(port, name, certificates.ca)


def test_a_client_of_another_job_refuses_the_certificate(tmp_path: Path) -> None:
    with (
        served(made("127.0.0.1"), tmp_path) as port,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        fetch_over_tls(port, "127.0.0.1", made("127.0.0.1").ca)


@pytest.mark.parametrize("off", [timedelta(minutes=50), -timedelta(days=29)])
def test_certificate_is_valid_despite_clock_skew(tmp_path: Path, off: timedelta) -> None:
    certificates = made("127.0.0.1", now=NOW + off)
    with served(certificates, tmp_path) as port:
        assert fetch_over_tls(port, "127.0.0.1", certificates.ca) == b"hello"


@pytest.mark.parametrize("off", [timedelta(hours=2), -timedelta(days=31)])
def test_certificate_expires(tmp_path: Path, off: timedelta) -> None:
    certificates = made("127.0.0.1", now=NOW + off)
    with (
        served(certificates, tmp_path) as port,
        pytest.raises(ssl.SSLCertVerificationError, match=r"expired|not yet valid"),
    ):
        fetch_over_tls(port, "127.0.0.1", certificates.ca)


def test_the_authority_signs_only_servers_and_servers_sign_nothing() -> None:
    certificates = made("127.0.0.1")
    for pem, authority, depth in ((certificates.ca, True, 0), (certificates.cert, False, None)):
        extensions = x509.load_pem_x509_certificate(pem.encode()).extensions
        limits = extensions.get_extension_for_class(x509.BasicConstraints)
        assert limits.critical
        assert (limits.value.ca, limits.value.path_length) == (authority, depth)


def load(ca: Path, url: str) -> str:
    argv = [tool("oha"), "--no-tui", "-n", "1", "--cacert", ca, url]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60).stdout


def test_a_load_tool_trusts_the_certificate(tmp_path: Path) -> None:
    """rustls is stricter than OpenSSL: it takes no authority as a server."""
    certificates = made("127.0.0.1")
    (tmp_path / "ca.pem").write_text(certificates.ca)
    (tmp_path / "other.pem").write_text(made("127.0.0.1").ca)
    with served(certificates, tmp_path) as port:
        outputs = {
            name: load(tmp_path / name, f"https://localhost:{port}")
            for name in ("ca.pem", "other.pem")
        }
    assert "certificate" not in outputs["ca.pem"]
    assert "invalid peer certificate" in outputs["other.pem"]


START = ["{python}", "server.py", "--port", "{port}"]
TLS_START = [*START, "--cert", "{cert}", "--key", "{key}"]
SERVICE = {"start": ["redis-server", "--port", "{port}"]}


def definition(
    *, subject: Mapping[str, Any] = {}, load: Mapping[str, Any] = {}, **more: Any
) -> Spec:
    return from_data(
        {
            "version": 1,
            "title": "t",
            **more,
            "subject": {"start": START, **subject},
            "load": {"requests": 1, **load},
        }
    )


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"load": {"protocol": "h2"}},
        {"load": {"tls": "{tls}"}, "matrix": {"tls": [False]}},
        {"load": {"protocol": "{protocol}"}, "matrix": {"protocol": ["h1", "h2"]}},
        {"services": {"redis": SERVICE}},
    ],
)
def test_a_definition_without_tls_needs_no_certificate(parts: dict[str, Any]) -> None:
    assert not needs_tls(definition(**parts))


@pytest.mark.parametrize(
    "parts",
    [
        {"load": {"tls": True}},
        {"load": {"protocol": "h3", "tls": True}},
        {"load": {"tls": "{tls}"}, "matrix": {"tls": [False, True]}},
        {"load": {"protocol": "{protocol}"}, "matrix": {"protocol": ["h1", "h3"]}},
        {"subject": {"start": TLS_START}},
        {"subject": {"env": {"KEY_FILE": "{key}"}}},
        {"services": {"redis": {"start": [*SERVICE["start"], "--tls-ca-cert-file", "{ca}"]}}},
        {"services": {"redis": {**SERVICE, "env": {"CERT": "{cert}"}}}},
        {"load": {"tool": "{tool}", "command": ["x", "{ca}"]}, "matrix": {"tool": ["script"]}},
    ],
)
def test_a_definition_with_tls_or_its_files_needs_certificates(parts: dict[str, Any]) -> None:
    assert needs_tls(definition(**parts))
