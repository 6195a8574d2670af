"""A client of the batch API of Git LFS, whose answers come from a server that nobody trusts.

https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md, with the transfer `basic`. Each
connection passes the egress rules of `transport.http`. The credential of the project goes to the
batch API only; the server names other addresses and headers for the objects.
"""

import base64
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from orchestrator.benchmarks.git_access import TOKEN_NEEDS_HTTPS, TOKEN_USER, Access
from orchestrator.benchmarks.lfs_pointers import LfsPointer
from orchestrator.benchmarks.lfs_store import CHUNK_BYTES, IncompleteObject, WrongObjectError
from orchestrator.benchmarks.remote_calls import Remote
from orchestrator.benchmarks.remotes import ServerAddress, parse_place
from orchestrator.benchmarks.submodule_urls import find_place, may_send_credential
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.untrusted_json import parse_json
from orchestrator.transport.http import (
    AnswerStream,
    DeliveryError,
    check_web_address,
    open_answer,
)
from orchestrator.transport.relay import IDLE_S, SLOW_BYTES_S, SLOW_S

#: The objects of one request, as git-lfs asks for them.
OBJECTS_A_REQUEST = 100
#: The answer to one request: signed addresses of objects have some 2 kB.
MOST_ANSWER_BYTES = 4 << 20
#: The redirects of one download, which some servers use to lead to their storage.
MOST_REDIRECTS = 3
MOST_HEADERS = 20
_MOST_HEADER_BYTES = 8192
_TYPE = "application/vnd.git-lfs+json"
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
_VALUE = re.compile(r"[ -~]*")
#: A server may not choose what belongs to the connection.
_OWN_HEADERS = {"host", "connection", "content-length", "transfer-encoding", "range"}
_REDIRECTS = {301, 302, 303, 307, 308}
_RANGE = re.compile(r"bytes (?P<start>[0-9]{1,18})-")
_LOCKED = {401, 403, 404}


class Download(NamedTuple):
    """Where an object is, and the headers of the request for it."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LfsServer:
    """The LFS server of one repository. `locked`: what to do if it wants a login."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    allowed: Sequence[str] = ()
    locked: str

    def find_downloads(
        self, pointers: Sequence[LfsPointer], deadline: float
    ) -> tuple[dict[str, Download], dict[str, str]]:
        """Return where these objects are, and the reasons for those that are missing, by oid."""
        body = {
            "operation": "download",
            "transfers": ["basic"],
            "objects": [pointer._asdict() for pointer in pointers],
            "hash_algo": "sha256",
        }
        headers = {**self.headers, "Accept": _TYPE, "Content-Type": _TYPE, "User-Agent": "Pitwall"}
        with open_answer(
            "POST", f"{self.url}/objects/batch", body=json.dumps(body).encode(), headers=headers,
            allowed=self.allowed, timeout_s=_compute_left_s(deadline), idle_s=IDLE_S,
        ) as answer:  # fmt: skip
            data = answer.read(MOST_ANSWER_BYTES + 1)
        if answer.status != 200:
            raise InvalidRequestError(self._describe_refusal(answer.status, data))
        if len(data) > MOST_ANSWER_BYTES:
            raise InvalidRequestError(
                f"the LFS server sent an answer of more than {MOST_ANSWER_BYTES >> 20} MiB"
            )
        return _parse_batch(data, pointers)

    def download(
        self,
        found: Download,
        target: IncompleteObject,
        deadline: float,
        check: Callable[[], None],
    ) -> None:
        """Write the rest of an object to `target`. `check` is called often, and may raise.

        Raise DeliveryError if the connection ended early: then a further attempt continues.
        """
        with self._open_object(found, target.size, deadline) as answer:
            _check_start(answer, target)
            slow_since, received = time.monotonic(), 0
            while data := answer.read_next(CHUNK_BYTES):
                target.write(data)
                check()
                received += len(data)
                if time.monotonic() - slow_since >= SLOW_S:
                    _check_speed(received)
                    slow_since, received = time.monotonic(), 0
        # Without a length, the end of the connection is the end of the object.
        if target.missing_bytes and answer.get_header("Content-Length"):
            raise DeliveryError(
                f"the connection ended after {target.size:,} of "
                f"{target.size + target.missing_bytes:,} bytes"
            )

    @contextmanager
    def _open_object(self, found: Download, start: int, deadline: float) -> Iterator[AnswerStream]:
        """Open the object at its address or behind a few redirects, from its byte `start` on."""
        ranged = {"Range": f"bytes={start}-"} if start else {}
        for _ in range(MOST_REDIRECTS + 1):
            self._check_address(found.url)
            headers = {**found.headers, **ranged, "User-Agent": "Pitwall"}
            with open_answer(
                "GET", found.url, headers=headers, allowed=self.allowed,
                timeout_s=_compute_left_s(deadline), idle_s=IDLE_S,
            ) as answer:  # fmt: skip
                if answer.status not in _REDIRECTS:
                    yield answer
                    return
                found = _follow(found, answer.get_header("Location"))
        raise InvalidRequestError(f"the object is behind more than {MOST_REDIRECTS} redirects")

    def _check_address(self, url: str) -> None:
        """Refuse an invalid address, and one without encryption if the server itself has it."""
        try:
            check_web_address(url)
        except InvalidRequestError as error:
            raise InvalidRequestError("the LFS server names an invalid address for it") from error
        if self.url.startswith("https:") and not url.startswith("https:"):
            raise InvalidRequestError("the LFS server names an address for it without encryption")

    def _describe_refusal(self, status: int, data: bytes) -> str:
        words = _read_message(data)
        quote = f" ({words})" if words else ""
        advice = f"; {self.locked}" if status in _LOCKED else ""
        return f"the LFS server answered with HTTP status {status}{quote}{advice}"


def find_server(remote: Remote, lfs_url: str) -> LfsServer:
    """Return the LFS server of a repository. `lfs_url`: that of `.lfsconfig`; empty if none is set.

    Raise InvalidRequestError for an address that is not http or https.
    """
    if remote.proxy:
        raise InvalidRequestError(
            "this installation uses PITWALL_GIT_PROXY, and objects of Git LFS are not fetched "
            "through a proxy; store the files in git itself"
        )
    url = lfs_url.rstrip("/") if lfs_url else _build_lfs_url(remote.url)
    try:
        place = parse_place(url)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"lfs.url in .lfsconfig is refused: {error}") from error
    if place.scheme == "ssh":
        raise InvalidRequestError("lfs.url in .lfsconfig uses SSH; use an https URL")
    own = parse_place(remote.url)
    trusted = may_send_credential(remote.url, url) if lfs_url else own.scheme != "ssh"
    return LfsServer(
        url=url,
        headers=_build_authorization(remote.access(), url) if trusted else {},
        allowed=remote.allowed,
        locked=_advise(own, trusted=trusted),
    )


def _build_lfs_url(url: str) -> str:
    """Return the address of the LFS server that belongs to a repository, as git-lfs does."""
    place = find_place(url)
    if place.server.scheme == "ssh":
        host = place.server.host
        url = f"https://{f'[{host}]' if ':' in host else host}{place.path}"
    url = url.rstrip("/")
    return f"{url if url.endswith('.git') else f'{url}.git'}/info/lfs"


def _build_authorization(access: Access, url: str) -> dict[str, str]:
    if not access.token:
        return {}
    place = parse_place(url)
    if place.scheme == "http" and not place.is_loopback:
        raise InvalidRequestError(TOKEN_NEEDS_HTTPS, field="token")
    words = f"{access.username or TOKEN_USER}:{access.token}"
    return {"Authorization": f"Basic {base64.b64encode(words.encode()).decode()}"}


def _advise(repository: ServerAddress, *, trusted: bool) -> str:
    if trusted:
        return (
            "if the repository is private, a maintainer can set a token in the project's "
            "settings, under Repository access"
        )
    if repository.scheme == "ssh":
        return (
            "the objects of an SSH repository are fetched over https without a login; if it is "
            "private, change the address of the project to https:// and store an access token"
        )
    return (
        "the token of the project is sent only to its own server, for addresses in the folder of "
        "its repository; remove lfs.url from .lfsconfig, or let the server allow anybody to read"
    )


def _parse_batch(
    data: bytes, pointers: Sequence[LfsPointer]
) -> tuple[dict[str, Download], dict[str, str]]:
    try:
        answer = parse_json(data)
        listed = [each for each in answer["objects"] if isinstance(each, dict)]
        transfer = answer.get("transfer") or "basic"
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidRequestError(
            "the LFS server did not answer as the batch API of Git LFS does"
        ) from error
    if transfer != "basic":
        raise InvalidRequestError("the LFS server offers only transfers other than basic")
    objects = {each["oid"]: each for each in listed if isinstance(each.get("oid"), str)}
    found: dict[str, Download] = {}
    problems: dict[str, str] = {}
    for pointer in pointers:
        answered = _parse_object(objects.get(pointer.oid), pointer)
        if isinstance(answered, Download):
            found[pointer.oid] = answered
        else:
            problems[pointer.oid] = answered
    return found, problems


def _parse_object(node: Any, pointer: LfsPointer) -> Download | str:
    """Return where an object is, or why it is not available."""
    if node is None:
        return "the LFS server did not answer for it"
    if isinstance(error := node.get("error"), dict):
        reason = _clean(error.get("message"))
        if error.get("code") == 404:
            return f"the LFS server does not have it{f' ({reason})' if reason else ''}"
        return f"the LFS server refuses it: {reason or 'no reason given'}"
    if node.get("size") != pointer.size:
        return f"the LFS server has another size than the {pointer.size:,} bytes of the pointer"
    try:
        action = node["actions"]["download"]
        headers = action.get("header") or {}
        return Download(_check_text(action["href"], 8192), _parse_headers(headers))
    except (TypeError, KeyError, AttributeError, ValueError):
        return "the LFS server names no valid address for it"


def _parse_headers(node: Any) -> dict[str, str]:
    """Return the headers that a server chose for a download; ValueError if one is invalid."""
    headers = {str(name): _check_text(value, _MOST_HEADER_BYTES) for name, value in node.items()}
    if len(headers) > MOST_HEADERS or not all(map(_HEADER.fullmatch, headers)):
        raise ValueError("these are no headers")
    return {name: value for name, value in headers.items() if name.lower() not in _OWN_HEADERS}


def _check_text(value: Any, most: int) -> str:
    if not isinstance(value, str) or len(value) > most or not _VALUE.fullmatch(value):
        raise ValueError("this is no short ASCII text")
    return value


def _follow(found: Download, location: str) -> Download:
    """Return the download behind a redirect; another server gets none of the headers."""
    url = urljoin(found.url, location)
    old, new = urlsplit(found.url), urlsplit(url)
    is_same = (old.scheme, old.netloc) == (new.scheme, new.netloc)
    return Download(url, found.headers if is_same else {})


def _check_start(answer: AnswerStream, target: IncompleteObject) -> None:
    """Raise InvalidRequestError if the answer is not the object, from the end of `target` on."""
    if answer.status == 206 and target.size:
        match = _RANGE.match(answer.get_header("Content-Range"))
        if match is None or int(match["start"]) != target.size:
            raise InvalidRequestError("the LFS server sent another part than requested")
    elif answer.status in (200, 416):
        target.restart()  # It does not support parts, or the part is wrong.
    if answer.status not in (200, 206):
        words = "" if answer.status != 416 else ": it has fewer bytes than the pointer states"
        raise InvalidRequestError(f"its server answered with HTTP status {answer.status}{words}")
    length = answer.get_header("Content-Length")
    if length and length != str(target.missing_bytes):
        raise WrongObjectError(
            f"the server has {length[:20]} bytes instead of the {target.missing_bytes:,} bytes "
            "that the pointer states"
        )


def _check_speed(received: int) -> None:
    if received < SLOW_BYTES_S * SLOW_S:
        raise DeliveryError(f"less than {SLOW_BYTES_S} bytes a second arrived for {SLOW_S:g} s")


def _compute_left_s(deadline: float) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise InvalidRequestError("the time limit was reached; the next run continues")
    return left_s


def _read_message(data: bytes) -> str:
    try:
        return _clean(parse_json(data)["message"])
    except (ValueError, TypeError, KeyError):
        return ""


def _clean(text: Any) -> str:
    """Return the words of a server for a message of one line."""
    words = str(text or "")[:200]
    return "".join(char if char.isprintable() else " " for char in words).strip()
