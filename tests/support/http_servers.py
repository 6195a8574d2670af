"""Real HTTP servers on loopback: one that receives webhooks, and a stand-in for APIs of forges."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Got:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


Answering = Callable[[Got], tuple[int, bytes, dict[str, str]]]


@contextmanager
def serving(answer: Answering) -> Iterator[str]:
    """Yield the address of a server with these answers."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            got = Got(self.command, self.path, headers, self.rfile.read(length))
            status, body, more = answer(got)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **more}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_PUT = _answer

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Receiver:
    """Receives webhooks; `answers` are the statuses of the next ones, then 200."""

    got: list[Got] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    url: str = ""

    def __call__(self, got: Got) -> tuple[int, bytes, dict[str, str]]:
        self.got.append(got)
        status = self.answers.pop(0) if self.answers else 200
        return status, b"thanks\0" + b"!" * 5000, self.headers


_CREDENTIALS = {
    "github": ("authorization", "Bearer s3cret"),
    "gitea": ("authorization", "token s3cret"),
    "gitlab": ("private-token", "s3cret"),
}
_STATES = {
    "github": {"pending", "success", "failure", "error"},
    "gitea": {"pending", "success", "failure", "error", "warning"},
    "gitlab": {"pending", "running", "success", "failed", "canceled"},
}


@dataclass
class StandIn:
    """The API of a forge with its documented refusals.

    401 without the token, 404 for an unknown object, 422 for an incomplete payload.
    """

    kind: str
    head_sha: str = ""
    fork: bool = False
    comments: dict[int, str] = field(default_factory=dict)
    statuses: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    writes: int = 0
    down: bool = False
    url: str = ""

    def __call__(self, got: Got) -> tuple[int, bytes, dict[str, str]]:
        name, value = _CREDENTIALS[self.kind]
        if self.down:
            status, data = 503, {"message": "down"}
        elif got.headers.get(name) != value:
            status, data = 401, {"message": "Bad credentials"}
        else:
            status, data = self._answer(got)
        return status, json.dumps(data).encode(), {"Content-Type": "application/json"}

    def _answer(self, got: Got) -> tuple[int, Any]:
        repository = "/projects/ada%2Fserver" if self.kind == "gitlab" else "/repos/ada/server"
        if not got.path.startswith(repository):
            return 404, {"message": "Not Found"}
        path = got.path.removeprefix(repository)
        if got.method == "GET":
            return self._pull(path)
        if got.headers.get("content-type") != "application/json":
            return 415, {"message": "send JSON"}
        if match := re.fullmatch(r"/statuses/([0-9a-f]{40})", path):
            return self._status(match[1], got.data)
        if not isinstance(got.data.get("body"), str) or len(got.data["body"]) > 65_536:
            return 422, {"message": "Validation Failed"}
        return self._comment(got.method, path, got.data["body"])

    def _pull(self, path: str) -> tuple[int, Any]:
        if self.kind == "gitlab":
            if path != "/merge_requests/5":
                return 404, {"message": "404 Not found"}
            source = 8 if self.fork else 7
            ids = {"source_project_id": source, "target_project_id": 7}
            return 200, {"iid": 5, "sha": self.head_sha, "target_branch": "main", **ids}
        if path != "/pulls/5":
            return 404, {"message": "Not Found"}
        home = {"full_name": "eve/server" if self.fork else "ada/server"}
        return 200, {
            "number": 5,
            "head": {"sha": self.head_sha, "repo": home},
            "base": {"ref": "main", "repo": {"full_name": "ada/server"}},
        }

    def _status(self, sha: str, data: dict[str, Any]) -> tuple[int, Any]:
        context = data.get("name" if self.kind == "gitlab" else "context")
        fits = data.get("state") in _STATES[self.kind] and context
        if not fits or len(data["description"]) > (255 if self.kind == "gitlab" else 140):
            return 422, {"message": "Validation Failed"}
        self.statuses.append((sha, data))
        return 201, {"id": len(self.statuses)}

    def _comment(self, method: str, path: str, text: str) -> tuple[int, Any]:
        notes = "/merge_requests/5/notes" if self.kind == "gitlab" else "/issues/5/comments"
        each = notes if self.kind == "gitlab" else "/issues/comments"
        change = "PUT" if self.kind == "gitlab" else "PATCH"
        if method == "POST" and path == notes:
            number = len(self.comments) + 1001
        elif method == change and (match := re.fullmatch(rf"{each}/(\d+)", path)):
            number = int(match[1])
            if number not in self.comments:
                return 404, {"message": "Not Found"}
        else:
            return 404, {"message": "Not Found"}
        self.writes += 1
        self.comments[number] = text
        return 200 if method == change else 201, {"id": number, "body": text}


@contextmanager
def receiving(**settings: Any) -> Iterator[Receiver]:
    receiver = Receiver(**settings)
    with serving(receiver) as receiver.url:
        yield receiver


@contextmanager
def serve_stand_in(kind: str, **settings: Any) -> Iterator[StandIn]:
    stand_in = StandIn(kind, **settings)
    with serving(stand_in) as stand_in.url:
        yield stand_in
