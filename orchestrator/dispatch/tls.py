"""Temporary certificates of one job: an authority that nobody else trusts, and a server's leaf."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from agents.hostagent.protocol import EMULATED_SERVER_ADDRESS
from orchestrator.benchmarks.fields import select_texts
from orchestrator.benchmarks.load_specs import list_configurations
from orchestrator.benchmarks.spec import Scalar, Spec

#: The clocks of hosts may be behind the server's.
EARLY = timedelta(hours=1)
LIFE = timedelta(days=30)
#: The addresses of a server for itself, and for a load on its own host.
OWN_ADDRESSES = ("127.0.0.1", "::1", "localhost", EMULATED_SERVER_ADDRESS)
#: The agent's placeholders for the files; a process that names one of them needs TLS.
WORDS = ("ca", "cert", "key")

_SIGNING, _SERVING = ("key_cert_sign", "crl_sign"), ("digital_signature",)
_USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
    *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """PEM texts: the authority's certificate, the leaf's, and the leaf's key (PKCS #8)."""

    ca: str
    cert: str
    key: str


def make_certificates(addresses: Sequence[str], *, now: datetime) -> Certificates:
    """Create an authority and a leaf for servers at `addresses` and on the local host.

    An address is an IP address, with or without brackets, or a name. Valid from EARLY before `now`
    (aware) to LIFE after it. The authority's own key is not stored.
    """
    signer, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = _name("Pitwall, for one job")
    ca = (
        _build_cert_builder(issuer, issuer, signer.public_key(), signer.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_build_key_usage(_SIGNING), critical=True)
        .sign(signer, SHA256())
    )
    # rustls refuses an authority as a server's certificate, so the leaf is separate.
    leaf = (
        _build_cert_builder(
            _name("server under test"), issuer, key.public_key(), signer.public_key(), now
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_build_key_usage(_SERVING), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_build_alternatives([*addresses, *OWN_ADDRESSES]), critical=False)
        .sign(signer, SHA256())
    )
    return Certificates(
        ca=ca.public_bytes(Encoding.PEM).decode(),
        cert=leaf.public_bytes(Encoding.PEM).decode(),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
    )


def needs_tls(spec: Spec) -> bool:
    """Return whether a case of the definition uses TLS, or a process needs the files."""
    return any(map(_needs_tls, list_configurations(spec)))


def _needs_tls(spec: Spec) -> bool:
    load = spec.load
    texts = [*(spec.subject.start or ()), *(load.command or [])]
    for env in (
        spec.subject.env,
        load.env,
        *(service.env for service in spec.services.values()),
        *(step.env for step in spec.prepare),
    ):
        texts += select_texts(env).values()
    for service in spec.services.values():
        texts += service.start
    for step in spec.prepare:
        texts += step.run
    return (
        _may_be(spec, load.tls, True)
        or _may_be(spec, load.protocol, "h3")
        or any(f"{{{word}}}" in text for word in WORDS for text in texts)
    )


def _may_be(spec: Spec, value: Scalar, wanted: Scalar) -> bool:
    """Return whether a field, which may name an axis, has the value `wanted` in some case."""
    if isinstance(value, str) and value.startswith("{"):
        return wanted in spec.list_values(value.strip("{}"))
    return value == wanted


def _build_cert_builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePublicKey,
    now: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder(
            subject_name=subject,
            issuer_name=issuer,
            public_key=key,
            serial_number=x509.random_serial_number(),
            not_valid_before=now - EARLY,
            not_valid_after=now + LIFE,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _build_key_usage(allowed: Sequence[str]) -> x509.KeyUsage:
    return x509.KeyUsage(**{usage: usage in allowed for usage in _USAGES})


def _build_alternatives(addresses: Sequence[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName(
        [_build_alternative(each) for each in dict.fromkeys(addresses)]
    )


def _build_alternative(address: str) -> x509.GeneralName:
    bare = address.strip("[]").partition("%")[0]
    try:
        return x509.IPAddress(ip_address(bare))
    except ValueError:
        return x509.DNSName(bare.encode("idna").decode())
