"""Where a request ends is never another place than where gunicorn sees its end."""

import pytest

from orchestrator.serving.framing import Stage, frame_of

HEAD = b"POST /login HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize("length", [b"5", b" 5 ", b"000000000005"])
def test_a_request_with_a_body_is_complete_with_its_last_byte(length: bytes) -> None:
    head = HEAD + b"Content-Length:" + length + b"\r\n\r\n"
    assert frame_of(head + b"hell").stage is Stage.INCOMPLETE
    frame = frame_of(head + b"hello" + HEAD)
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
def test_a_length_that_could_be_read_in_two_ways_is_left_to_gunicorn(lines: bytes) -> None:
    assert frame_of(HEAD + lines + b"\r\n\r\nhello").stage is Stage.STREAMED
