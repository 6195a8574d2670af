"""What the client does about servers that are away, busy, or somebody else. A server of its own."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from cli.pitwall.bar import Progress
from cli.pitwall.client import Client
from cli.pitwall.errors import NoAnswerError, RefusedError
from tests.support.terminal import a_terminal

TOKEN = "pw_secret-that-nobody-may-see"
OK = (200, {}, b'{"answer": 42}')


class Scripted(BaseHTTPRequestHandler):
    """Gives one answer after the other; None: ends the connection without one."""

    def do_GET(self) -> None:
        server: Any = self.server
        server.requests.append((self.path, self.headers["Authorization"]))
        answer = server.answers.pop(0)
        if answer is None:
            self.close_connection = True
            return
        status, headers, body = answer
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    running: Any = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    running.answers, running.requests = [], []
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def build_client(server: Any, pauses: list[float], **changes: Any) -> Client:
    port = server.server_address[1]
    return Client(f"http://127.0.0.1:{port}", TOKEN, sleep=pauses.append, **changes)


def test_temporary_errors_are_retried(server: Any) -> None:
    pauses: list[float] = []
    server.answers = [None, (503, {}, b""), (429, {"Retry-After": "7"}, b"{}"), (502, {}, b""), OK]
    assert build_client(server, pauses).get("hosts") == {"answer": 42}
    assert [path for path, _ in server.requests] == ["/api/v1/hosts"] * 5
    # Longer and longer, but for the server that said how long.
    assert pauses[2] == 7
    assert 0.25 <= pauses[0] <= 0.5 <= pauses[1] <= 1 <= pauses[3] <= 4


def test_the_progress_of_a_fetch_is_shown_with_the_next_try(server: Any) -> None:
    lines: list[str] = []
    fetch = b'{"type": "fetch-running", "detail": "the repository of web is being fetched%b"}'
    answers = [fetch % b"", fetch % b"", fetch % b" (12 %)"]
    server.answers = [*((503, {"Retry-After": "1"}, body) for body in answers), OK]
    assert build_client(server, [], report=lines.append).get("runs") == {"answer": 42}
    assert lines == [
        "the repository of web is being fetched; trying again in 1.00 s",
        "the repository of web is being fetched (12 %); trying again in 1.00 s",
    ]


def test_retries_end_with_a_message_and_a_fix(server: Any) -> None:
    pauses: list[float] = []
    server.answers = [(503, {"Retry-After": "3600"}, b'{"detail": "back in an hour"}')]
    with pytest.raises(RefusedError, match="back in an hour"):
        build_client(server, pauses).get("hosts")
    assert pauses == []
    server.answers = [None] * 20
    with pytest.raises(NoAnswerError, match=r"cannot be reached .* is PITWALL_URL right"):
        build_client(server, pauses, patience_s=10).get("hosts")
    assert sum(pauses) <= 10


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((302, {"Location": "https://elsewhere.example/"}, b""), "redirects to https://elsewhere"),
        ((200, {}, b"<html>"), "is not JSON"),
        ((500, {}, b"<html>"), "answered 500 without a reason"),
        (
            (502, {"Content-Type": "application/problem+json"}, b'{"detail": "host is off"}'),
            "host is off",
        ),
        (
            (422, {}, b'{"detail": "a: x", "errors": [{"field": "a", "detail": "x"},'
             b' {"field": "b", "detail": "y"}]}'),
            "a: x\n  b: y",
        ),
    ],
)  # fmt: skip
def test_permanent_errors_are_not_retried(server: Any, answer: Any, message: str) -> None:
    server.answers = [answer]
    with pytest.raises(NoAnswerError) as refused:
        build_client(server, []).get("hosts")
    assert message in str(refused.value)
    assert TOKEN not in str(refused.value)
    assert server.requests == [("/api/v1/hosts", f"Bearer {TOKEN}")]


@pytest.mark.parametrize(
    ("url", "token"),
    [("", TOKEN), ("pitwall.example.org", TOKEN), ("https://a:b@pitwall.example.org", TOKEN),
     ("https://pitwall.example.org", ""), ("https://pitwall.example.org", f"{TOKEN}\n{TOKEN}")],
)  # fmt: skip
def test_invalid_settings_are_refused_without_showing_the_token(url: str, token: str) -> None:
    with pytest.raises(NoAnswerError, match="PITWALL_") as refused:
        Client(url, token)
    assert TOKEN not in str(refused.value)


def test_the_progress_bar_stays_in_one_line_of_a_terminal() -> None:
    with a_terminal(columns=40) as terminal:
        progress = Progress(terminal.stream)
        progress.show(0, 4, "queued")
        progress.show(2, 4, "running: a text that is longer than the terminal")
        progress.end()
        drawn = terminal.read()
    lines = drawn.replace("\r\n", "").split("\r")
    assert [len(line) for line in lines] == [0, 39, 39]
    assert lines[2].startswith("[############............] 2/4  running")
