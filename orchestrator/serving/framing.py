"""Find the end of the first request in the bytes of a connection.

This only decides when a thread can begin. gunicorn parses the same bytes again, and refuses
malformed requests.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

#: A longer head is left to gunicorn, which refuses it.
MOST_HEAD_BYTES = 64 * 1024
#: A longer body is read by a thread, and few threads do that. All forms and JSON are shorter.
MOST_BODY_BYTES = 2_750_000

_LENGTH = re.compile(rb"\r\ncontent-length[ \t]*:([^\r\n]*)", re.IGNORECASE)
_PLAIN_LENGTH = re.compile(rb"[ \t]*([0-9]{1,12})[ \t]*")
_CODED = re.compile(rb"\r\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_EXPECT = re.compile(rb"\r\nexpect[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_FORWARDED = re.compile(rb"\r\nx-forwarded-for[ \t]*:([^\r\n]*)", re.IGNORECASE)
_ACCEPT_HTML = re.compile(rb"\r\naccept[ \t]*:[^\r\n]*text/html", re.IGNORECASE)
_OLD_VERSION = re.compile(rb"[^\r\n]* HTTP/1\.0\r\n")

#: A client that sends `Expect: 100-continue` waits for this.
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Stage(Enum):
    """INCOMPLETE: more bytes have to come. COMPLETE: a thread needs no more bytes.

    STREAMED: the thread has to read the body.
    """

    INCOMPLETE = auto()
    COMPLETE = auto()
    STREAMED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """`size`: bytes of the request. `has_head`: whether its head has arrived.

    `expects`: whether the client waits for CONTINUE before it sends the body.
    """

    stage: Stage
    size: int
    has_head: bool = False
    expects: bool = False


def parse_frame(received: bytes | bytearray) -> Frame:
    """Return the frame of the first request in `received`."""
    end = received.find(b"\r\n\r\n")
    if end < 0 or end + 4 > MOST_HEAD_BYTES:
        if len(received) > MOST_HEAD_BYTES:
            return Frame(stage=Stage.COMPLETE, size=len(received))
        return Frame(stage=Stage.INCOMPLETE, size=len(received) + 1)
    head = bytes(received[: end + 2])
    lengths = _LENGTH.findall(head)
    plain = _PLAIN_LENGTH.fullmatch(lengths[0]) if len(lengths) == 1 else None
    expected = [value.strip().lower() for value in _EXPECT.findall(head)]
    is_odd = (bool(lengths) and plain is None) or expected not in ([], [b"100-continue"])
    if _CODED.search(head) or is_odd:
        # A length that gunicorn reads differently would make a body the next request. gunicorn
        # therefore reads it itself.
        return Frame(stage=Stage.STREAMED, size=end + 4, has_head=True)
    body = int(plain[1]) if plain else 0
    size = end + 4 + body
    if body > MOST_BODY_BYTES:
        return Frame(stage=Stage.STREAMED, size=size, has_head=True)
    stage = Stage.COMPLETE if len(received) >= size else Stage.INCOMPLETE
    expects = bool(expected) and not _OLD_VERSION.match(head)
    return Frame(stage=stage, size=size, has_head=True, expects=expects)


def find_client(received: bytes | bytearray, peer: str, proxies: int) -> str:
    """Return the address of the client: the one that the outermost of `proxies` own proxies saw."""
    end = received.find(b"\r\n\r\n")
    if not proxies or end < 0:
        return peer
    lines = _FORWARDED.findall(bytes(received[: min(end, MOST_HEAD_BYTES)]))
    addresses = b",".join(lines).decode("latin-1").split(",")
    return addresses[-proxies].strip() if lines and len(addresses) >= proxies else peer


def read_path(received: bytes | bytearray) -> bytes:
    """Return the path of the request line without its query; empty if there is none."""
    words = bytes(received[:256]).lstrip(b"\r\n").split(b" ", 2)
    return words[1].partition(b"?")[0] if len(words) > 1 else b""


def accepts_html(received: bytes | bytearray) -> bool:
    """Return whether a browser asks for a page."""
    return bool(_ACCEPT_HTML.search(received, 0, MOST_HEAD_BYTES))
