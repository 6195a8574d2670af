"""The address of a host, and the key that proves its identity."""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass, field
from typing import Self

from orchestrator.core.errors import InvalidRequestError
from orchestrator.transport.base import check_work_dir

_JUMP = re.compile(
    r"(?P<user>[A-Za-z_][A-Za-z0-9_.-]{0,63})@"
    r"(?:\[(?P<literal>[0-9A-Fa-f:.]{2,45})\]|(?P<host>[A-Za-z0-9][A-Za-z0-9._-]{0,252}))"
    r"(?::(?P<port>[0-9]{1,5}))?[ \t]+(?P<key>[^\r\n]{1,2000})",
    re.ASCII,
)
_LINE = re.compile(r"([a-z0-9@.-]+)[ \t]+([A-Za-z0-9+/]+={0,2})(?:[ \t].*)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostKey:
    """A public key of a host: its type, such as `ssh-ed25519`, and its blob in base64."""

    type: str
    base64: str

    @classmethod
    def parse(cls, line: str) -> Self:
        """Parse `ssh-ed25519 AAAA… [comment]`, as in a `.pub` file.

        Raise InvalidRequestError otherwise.
        """
        match = _LINE.fullmatch(line.strip())
        if match is None or not _names_its_type(match[2], match[1]):
            raise InvalidRequestError(
                "The host key must be one line such as 'ssh-ed25519 AAAA…', as in the host's "
                "/etc/ssh/ssh_host_ed25519_key.pub.",
                field="host_key",
            )
        return cls(type=match[1], base64=match[2])

    @classmethod
    def from_blob(cls, key_type: str, blob: bytes) -> Self:
        """Return the key from SSH's binary form."""
        return cls(type=key_type, base64=base64.b64encode(blob).decode())

    @property
    def line(self) -> str:
        """`ssh-ed25519 AAAA…`: the stored and pinned form."""
        return f"{self.type} {self.base64}"

    @property
    def fingerprint_sha256(self) -> str:
        """`SHA256:…`, as `ssh-keygen -l` prints it."""
        digest = hashlib.sha256(base64.b64decode(self.base64)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


@dataclass(frozen=True, slots=True, kw_only=True)
class JumpHost:
    """A host that connections to another one pass, with its pinned key."""

    user: str
    host: str
    port: int
    host_key: str

    @classmethod
    def parse(cls, line: str) -> Self:
        """Parse `user@host:port ssh-ed25519 AAAA…`; the port may be missing.

        Raise InvalidRequestError otherwise, without a field.
        """
        match = _JUMP.fullmatch(line.strip())
        if match is None or not 1 <= int(match["port"] or 22) <= 65_535:
            raise InvalidRequestError(
                f"expected a line such as 'user@bastion.example:22 ssh-ed25519 AAAA…', got {line!r}"
            )
        return cls(
            user=match["user"],
            host=match["literal"] or match["host"],
            port=int(match["port"] or 22),
            host_key=HostKey.parse(match["key"]).line,
        )

    @property
    def line(self) -> str:
        return f"{self.user}@{place(self.host, self.port)} {self.host_key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SshAddress:
    """Everything that is needed to log in to a host.

    `host_key` is the pinned public key (`ssh-ed25519 AAAA…`). `private_key` is ours as OpenSSH PEM
    text without passphrase, and `certificate` one of it, or empty. `work_dir` is absolute or
    relative to the login's home. `networks`: the networks that the host may be in, see
    `transport.networks`. `jumps`: the hosts that the connection passes, in their order; our key
    logs in to each.
    """

    host: str
    port: int = 22
    user: str
    host_key: str
    private_key: str = field(repr=False)
    certificate: str = ""
    work_dir: str = ".pitwall"
    networks: tuple[str, ...] = ()
    jumps: tuple[JumpHost, ...] = ()

    def __post_init__(self) -> None:
        check_work_dir(self.work_dir)

    def __str__(self) -> str:
        return f"{self.user}@{place(self.host, self.port)}"


def place(host: str, port: int) -> str:
    """Return `host:port` for messages, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _names_its_type(blob_base64: str, key_type: str) -> bool:
    """Return whether the blob names this key type: it starts with its length and name."""
    try:
        blob = base64.b64decode(blob_base64, validate=True)
    except binascii.Error:
        return False
    name = key_type.encode()
    return blob.startswith(len(name).to_bytes(4, "big") + name)
