"""The way to a git server that somebody typed: never to one inside our own network.

As for webhooks (`transport/http.py`) the name is resolved once and checked, git is told to connect
to the address that was checked, and a redirect is not followed: it would lead anywhere.
"""

import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from orchestrator.core.errors import InvalidRequestError
from orchestrator.transport.http import ForbiddenAddressError, UnresolvedError, checked_address

SSH = "ssh -o BatchMode=yes"
_PORTS = {"http": 80, "https": 443, "ssh": 22}
_SHORT = re.compile(r"^\w[\w.-]*@([\w.-]+):")


class Way(NamedTuple):
    """Options of git, and the command that it starts for SSH."""

    options: tuple[str, ...] = ()
    ssh: str = SSH


def way_to(url: str, allowed: Sequence[str]) -> Way:
    """How git gets to a URL of `check_url`, or to a path of this machine.

    `allowed`: networks of our own that servers may be in. InvalidRequestError for any other one
    inside. A name that means nothing here is left to git, which may have a proxy, or to ssh, whose
    configuration may know it: both are the business of whoever runs Pitwall.
    """
    place = _place(url)
    if place is None:
        return Way()
    scheme, host, port = place
    try:
        address = checked_address(host, port, allowed)
    except ForbiddenAddressError as error:
        raise InvalidRequestError(str(error), field="repository_url") from error
    except UnresolvedError:
        return Way(_NO_REDIRECTS)
    if scheme == "ssh":
        known_as = host if port == _PORTS["ssh"] else f"[{host}]:{port}"
        words = ("-o", f"HostName={address}", "-o", f"HostKeyAlias={known_as}")
        return Way(ssh=f"{SSH} {shlex.join(words)}")
    shown = f"[{address}]" if ":" in address else address
    return Way((*_NO_REDIRECTS, "-c", f"http.curloptResolve={host}:{port}:{shown}"))


_NO_REDIRECTS = ("-c", "http.followRedirects=false")


def _place(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port; None for a path of this machine."""
    if url.startswith("/"):
        return None
    short = _SHORT.match(url)
    if short:
        return "ssh", short[1], _PORTS["ssh"]
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidRequestError(
            "the address of the repository is no URL", field="repository_url"
        ) from error
    if not host:
        raise InvalidRequestError(
            "the address of the repository names no host", field="repository_url"
        )
    return parts.scheme, host, port or _PORTS[parts.scheme]
