"""Where a request ends is never another place than where gunicorn sees its end."""

import pytest

from orchestrator.serving.framing import Stage, find_client, parse_frame

HEAD = b"POST /login HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize("length", [b"5", b" 5 ", b"000000000005"])
def test_a_request_is_complete_with_the_last_byte_of_its_body(length: bytes) -> None:
    head = HEAD + b"Content-Length:" + length + b"\r\n\r\n"
    assert parse_frame(head + b"hell").stage is Stage.INCOMPLETE
    frame = parse_frame(head + b"hello" + HEAD)
    assert (frame.stage, frame.size) == (Stage.COMPLETE, len(head) + 5)


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 0000000000005",
        b"Content-Length: +5",
        b"Content-Length: 5\r\nContent-Length: 0",
        b"Content-Length: 0, 5",
        b"Transfer-Encoding: chunked",
    ],
)
def test_an_ambiguous_length_is_left_to_gunicorn(lines: bytes) -> None:
    assert parse_frame(HEAD + lines + b"\r\n\r\nhello").stage is Stage.STREAMED


@pytest.mark.parametrize(
    ("lines", "stage", "expects"),
    [
        (b"Expect: 100-Continue\r\nContent-Length: 5", Stage.INCOMPLETE, True),
        (b"Expect: 100-continue\r\nContent-Length: 9000000", Stage.STREAMED, False),
        (b"Expect: 100-continue\r\nTransfer-Encoding: chunked", Stage.STREAMED, False),
        (b"Expect: something\r\nContent-Length: 5", Stage.STREAMED, False),
        (
            b"Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 5",
            Stage.STREAMED,
            False,
        ),
    ],
)
def test_expect_continue_is_granted_for_a_short_body(
    lines: bytes, stage: Stage, expects: bool
) -> None:
    frame = parse_frame(HEAD + lines + b"\r\n\r\n")
    assert (frame.stage, frame.expects) == (stage, expects)
    old = HEAD.replace(b"HTTP/1.1", b"HTTP/1.0")
    assert not parse_frame(old + lines + b"\r\n\r\n").expects


def test_the_client_address_is_that_seen_by_the_outermost_trusted_proxy() -> None:
    lines = b"X-Forwarded-For: 192.0.2.1\r\nx-forwarded-for: 198.51.100.7, 203.0.113.5\r\n\r\n"
    assert find_client(HEAD + lines, "10.0.0.1", 0) == "10.0.0.1"
    assert find_client(HEAD + lines, "10.0.0.1", 1) == "203.0.113.5"
    assert find_client(HEAD + lines, "10.0.0.1", 2) == "198.51.100.7"
    assert find_client(HEAD + lines, "10.0.0.1", 4) == "10.0.0.1"
    assert find_client(HEAD + b"\r\n", "10.0.0.1", 1) == "10.0.0.1"
