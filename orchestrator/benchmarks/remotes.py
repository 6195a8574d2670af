"""Connections to git servers whose URL a user typed: never to a server in the internal network.

git can only connect to a `Relay`, which leads to the checked addresses of the one host in the URL.
So it does not matter how git, curl or ssh interpret the URL. Redirects are not followed: they would
lead elsewhere.
"""

import ipaddress
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from orchestrator.core.errors import InvalidRequestError
from orchestrator.transport.http import DeliveryError, resolve_addresses
from orchestrator.transport.relay import SLOW_BYTES_S, SLOW_S, Relay

_PORTS = {"http": 80, "https": 443, "ssh": 22}
# A host starts with no dash: that would be an option of ssh. It has no `%`: git decodes it.
_HOST = r"(?P<host>[A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])"
_USER = r"(?P<user>[A-Za-z0-9_][A-Za-z0-9._-]*)@"
_REST = r"(?::(?P<port>[0-9]{1,5}))?(?P<path>/[^\s\x00-\x1f\x7f]*)?"
_WEB = re.compile(rf"(?P<scheme>https?)://{_HOST}{_REST}")
_SSH = re.compile(rf"(?P<scheme>ssh)://(?:{_USER})?{_HOST}{_REST}")
_SHORT = re.compile(rf"{_USER}{_HOST}:(?P<path>[\w./~-]+)", re.ASCII)
_SECRET = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*@|[^/@\s]*:[^/@\s]*@", re.IGNORECASE)


class ServerAddress(NamedTuple):
    scheme: str
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"

    @property
    def known_hosts_name(self) -> str:
        """Return its name in a `known_hosts` file."""
        host = self.host.lower()
        return host if self.port == _PORTS["ssh"] else f"[{host}]:{self.port}"


@dataclass(frozen=True, slots=True)
class GitRoute:
    """The settings and environment variables of a call of git; `relay` knows the error."""

    config: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    relay: Relay | None = None


def check_url(url: str, *, allow_local: bool) -> None:
    """Raise InvalidRequestError unless `url` is https, http or ssh, or an allowed path."""
    if not (allow_local and url.startswith("/")):
        parse_place(url)


def parse_place(url: str) -> ServerAddress:
    """Return scheme, host and port of a URL that is no path; InvalidRequestError for any other."""
    match = _WEB.fullmatch(url) or _SSH.fullmatch(url) or _SHORT.fullmatch(url)
    if match is None:
        raise InvalidRequestError(_describe_fault(url), field="repository_url")
    groups = match.groupdict()
    scheme = groups.get("scheme") or "ssh"
    port = int(groups.get("port") or _PORTS[scheme])
    if not 0 < port < 1 << 16:
        raise InvalidRequestError(f"{port} is not a port", field="repository_url")
    return ServerAddress(scheme, match["host"].strip("[]"), port)


def _describe_fault(url: str) -> str:
    if _SECRET.match(url):
        return (
            "an address must not contain a user name or password, except git@ of SSH; add the "
            "project, then store an access token or a deploy key in its settings, under Repository "
            "access"
        )
    # A misspelt URL may contain a password as well.
    got = f", got {url[:200]!r}" if "@" not in url else ""
    return (
        "expected a repository address such as https://host/path or git@host:path, with the host "
        f"in ASCII letters (xn--… for others){got}"
    )


def strip_secret(url: str) -> str:
    """Return the URL of an older version without user name and password; SSH keeps its user."""
    parts = urlsplit(url)
    user_info, _, host = parts.netloc.rpartition("@")
    if not user_info:
        return url
    user = user_info.partition(":")[0]
    netloc = f"{user}@{host}" if user and parts.scheme == "ssh" else host
    return urlunsplit(parts._replace(netloc=netloc))


@contextmanager
def open_route(
    place: ServerAddress, allowed: Sequence[str], *, ssh_options: Sequence[str], proxy: str = ""
) -> Iterator[GitRoute]:
    """Provide the connection of git to a server, within the context.

    `allowed`: internal networks that servers may be in. Raise InvalidRequestError for other
    internal addresses, and for a name that cannot be resolved. `proxy`: the operator's HTTP proxy
    for http and https, which then has to block internal addresses itself.
    """
    is_web = place.scheme != "ssh"
    if proxy and is_web:
        yield GitRoute({**_WEB_CONFIG, "http.proxy": proxy})
        return
    try:
        addresses = resolve_addresses(place.host, place.port, allowed)
    except DeliveryError as error:
        raise InvalidRequestError(str(error), field="repository_url") from error
    # One connection of ssh stays open while git resolves deltas for many minutes, with little
    # traffic except keepalives. The time limit of the fetch ends it.
    slow_s = SLOW_S if is_web else None
    with Relay(place.host, place.port, addresses, socks=is_web, slow_s=slow_s) as relay:
        if is_web:
            door = {"http.proxy": f"socks5h://127.0.0.1:{relay.port}"}
            yield GitRoute({**_WEB_CONFIG, **door}, relay=relay)
        else:
            command = _build_ssh_command(place, relay.port, ssh_options)
            variables = {"GIT_SSH_COMMAND": command, "GIT_SSH_VARIANT": "ssh"}
            yield GitRoute(variables=variables, relay=relay)


_WEB_CONFIG = {
    "http.followRedirects": "false",
    "http.lowSpeedLimit": f"{SLOW_BYTES_S}",
    "http.lowSpeedTime": f"{SLOW_S:.0f}",
}
_SSH_OPTIONS = (
    "BatchMode=yes", "IdentitiesOnly=yes", "IdentityAgent=none", "ForwardAgent=no",
    "PreferredAuthentications=publickey", "ClearAllForwardings=yes", "ControlPath=none",
    "PermitLocalCommand=no", "GlobalKnownHostsFile=/dev/null", "UpdateHostKeys=no",
    "CheckHostIP=no", "ConnectTimeout=20", "ServerAliveInterval=15", "ServerAliveCountMax=4",
)  # fmt: skip


def _build_ssh_command(place: ServerAddress, port: int, options: Sequence[str]) -> str:
    door = ("HostName=127.0.0.1", f"Port={port}", f"HostKeyAlias={place.known_hosts_name}")
    words = ["ssh", "-F", "/dev/null"]
    for option in (*door, *_SSH_OPTIONS, *options):
        words += ["-o", option]
    return shlex.join(words)
