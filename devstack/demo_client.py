"""A client of Pitwall's REST API like that of a CI: `urllib`, a token, JSON."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlencode

from devstack.errors import DevstackError

TIMEOUT_S = 30
PATIENCE_S = 30


class ApiError(DevstackError):
    """The API refused a request or did not answer."""


class Client:
    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token
        # Do not use a proxy for requests to this machine.
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, path: str, **query: str) -> Any:
        """Return the decoded answer. Wait for a web server that is restarting."""
        target = f"{path}?{urlencode(query)}" if query else path
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._ask("GET", target, None)
            except OSError as error:
                if time.monotonic() > deadline:
                    raise ApiError(f"GET {self.url}{target}: {error}") from error
                time.sleep(1)

    def post(self, path: str, body: dict[str, Any], *, key: str = "") -> Any:
        """Return the decoded answer. Raise ApiError. With a key the request may be repeated."""
        try:
            return self._ask("POST", path, json.dumps(body).encode(), key)
        except OSError as error:
            raise ApiError(f"POST {self.url}{path}: {error}") from error

    def _ask(self, method: str, path: str, body: bytes | None, key: str = "") -> Any:
        request = urllib.request.Request(
            f"{self.url}{path}",
            data=body,
            method=method,
            headers={
                "Authorization": f"Bearer {self.token}",
                "Accept": "application/json",
                "Content-Type": "application/json",
                **({"Idempotency-Key": key} if key else {}),
            },
        )
        try:
            with self.opener.open(request, timeout=TIMEOUT_S) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read().decode(errors="replace")
            raise ApiError(
                f"{method} {path} was answered with {error.code}: {read_problem(text)}"
            ) from error


def read_problem(text: str) -> str:
    """Return the text of a problem document, or the beginning of another answer."""
    try:
        problem = json.loads(text)
        return str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        return text[:500]
