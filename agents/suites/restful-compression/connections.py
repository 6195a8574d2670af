"""One connection to the server: httpx over HTTP/1.1 and HTTP/2, niquests over HTTP/3.

Both return the body as received, so that the same code decodes each coding.
"""

import ssl
from abc import ABC, abstractmethod
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """`body` as received, with its content coding."""

    status: int
    coding: str
    body: bytes


class Connection(ABC):
    """`spoken`: the protocol of the last response, in the form that a load tool reports."""

    spoken: str | None = None

    @abstractmethod
    def get(self, path: str, coding: str) -> Answer: ...

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def connect(asked: dict[str, Any]) -> Connection:
    """Return a connection for the protocol that Pitwall requests."""
    return WithNiquests(asked) if asked["protocol"] == "h3" else WithHttpx(asked)


class WithHttpx(Connection):
    def __init__(self, asked: dict[str, Any]) -> None:
        import httpx

        self._client = httpx.Client(
            base_url=f"{asked['url'].partition(':')[0]}://{asked['address']}:{asked['port']}",
            http1=asked["protocol"] == "h1",
            http2=asked["protocol"] == "h2",
            verify=ssl.create_default_context(cafile=asked["ca"]) if asked["tls"] else True,
            trust_env=False,
            timeout=httpx.Timeout(asked["request_timeout_s"], connect=asked["connect_timeout_s"]),
            limits=httpx.Limits(max_connections=1),
        )

    def get(self, path: str, coding: str) -> Answer:
        headers = {"accept-encoding": coding}
        with self._client.stream("GET", path, headers=headers) as answer:
            body = b"".join(answer.iter_raw())
        self.spoken = {"HTTP/1.1": "h1", "HTTP/2": "h2"}[answer.http_version]
        return Answer(answer.status_code, answer.headers.get("content-encoding", "identity"), body)

    def close(self) -> None:
        self._client.close()


class WithNiquests(Connection):
    def __init__(self, asked: dict[str, Any]) -> None:
        import niquests

        self._base = f"https://{asked['address']}:{asked['port']}"
        self._timeout = (asked["connect_timeout_s"], asked["request_timeout_s"])
        # The others are disabled, so that it cannot fall back.
        self._session = niquests.Session(disable_http1=True, disable_http2=True, pool_maxsize=1)
        self._session.quic_cache_layer.add_domain(asked["address"].strip("[]"), asked["port"])
        self._session.verify = asked["ca"]
        # REQUESTS_CA_BUNDLE would override our authority.
        self._session.trust_env = False

    def get(self, path: str, coding: str) -> Answer:
        answer = self._session.get(
            self._base + path,
            headers={"accept-encoding": coding},
            timeout=self._timeout,
            stream=True,
        )
        body = answer.raw.read(decode_content=False)
        self.spoken = {11: "h1", 20: "h2", 30: "h3"}[answer.http_version]
        return Answer(answer.status_code, answer.headers.get("content-encoding", "identity"), body)

    def close(self) -> None:
        self._session.close()
