"""A client of the REST API: it retries temporary failures, and never shows the token."""

from __future__ import annotations

import json
import random
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, NamedTuple, Optional

from .errors import NoAnswerError, RefusedError
from .units import format_seconds

#: Time limit of one request, including its retries.
PATIENCE_S = 180.0
#: Time limit while the server fetches the repository: a first clone may take long.
FETCH_PATIENCE_S = 1800.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
TIMEOUT_S = 60.0
PAGE = 200
#: The server or a proxy is busy or restarting.
PASSING = (429, 502, 503, 504)
_TOKEN = re.compile(r"[\x21-\x7e]+")


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    def header(self, name: str) -> str:
        """Return the header, or "" if it is missing."""
        return next((text for key, text in self.headers.items() if key.lower() == name), "")

    def data(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise NoAnswerError(
                "the response of the server is not JSON; is PITWALL_URL the address of "
                "Pitwall itself?"
            ) from error


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Does not follow redirects, because they would send the token elsewhere."""

    def redirect_request(self, *_args: Any) -> None:
        return None


class Client:
    """`url` is the address of Pitwall's pages. Requests are idempotent and may be sent again."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        patience_s: float = PATIENCE_S,
        sleep: Callable[[float], None] = time.sleep,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.url = _check_url(url)
        self._token = _check_token(token)
        self._patience_s = patience_s
        self._sleep = sleep
        self._report = report
        self._opener = urllib.request.build_opener(_NoRedirects)

    def get(self, path: str, query: Optional[Mapping[str, Any]] = None, wait_s: float = 0) -> Any:
        return self.ask("GET", path, query=query, wait_s=wait_s).data()

    def pages(
        self, path: str, key: str, query: Optional[Mapping[str, Any]] = None
    ) -> Iterator[Any]:
        """Yield all entries of a paged list; `key` is its name in the response."""
        cursor = None
        while True:
            page = self.get(path, {**(query or {}), "limit": PAGE, "cursor": cursor})
            yield from page[key]
            cursor = page["next"]
            if cursor is None:
                return

    def text(self, path: str, query: Optional[Mapping[str, Any]] = None) -> str:
        return self.ask("GET", path, query=query).body.decode()

    def post(self, path: str, data: Any, headers: Optional[Mapping[str, str]] = None) -> Any:
        body = json.dumps(data).encode()
        own = {"Content-Type": "application/json", **(headers or {})}
        return self.ask("POST", path, body=body, headers=own).data()

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        body: Optional[bytes] = None,
        headers: Optional[Mapping[str, str]] = None,
        wait_s: float = 0,
    ) -> Answer:
        """Send a request; RefusedError with the server's message, or NoAnswerError."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        address = f"{self.url}/api/v1/{path}" + (
            f"?{urllib.parse.urlencode(given)}" if given else ""
        )
        request = urllib.request.Request(address, data=body, method=method)
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        request.add_header("Authorization", f"Bearer {self._token}")
        request.add_header("User-Agent", "pitwall-cli")
        return self._patiently(request, TIMEOUT_S + wait_s)

    def _patiently(self, request: urllib.request.Request, timeout_s: float) -> Answer:
        last_line, waited, pause = "", 0.0, FIRST_PAUSE_S
        while True:
            trouble, answer = self._once(request, timeout_s)
            if answer is not None and not _may_pass(answer):
                return _check_accepted(answer)
            wanted = _retry_after(answer)
            rest = wanted if wanted is not None else pause * random.uniform(0.5, 1.0)
            fetching = _fetch_progress(answer)
            patience_s = max(self._patience_s, FETCH_PATIENCE_S) if fetching else self._patience_s
            if waited + rest > patience_s:
                if answer is not None:
                    return _check_accepted(answer)
                raise NoAnswerError(
                    f"{self.url} cannot be reached ({trouble}); is PITWALL_URL right?"
                )
            line = f"{fetching or trouble}; trying again in {format_seconds(rest)}"
            if line != last_line:
                self._report(line)
            self._sleep(rest)
            last_line, waited, pause = line, waited + rest, min(LONGEST_PAUSE_S, pause * 2)

    def _once(
        self, request: urllib.request.Request, timeout_s: float
    ) -> tuple[str, Optional[Answer]]:
        try:
            with self._opener.open(request, timeout=timeout_s) as response:
                headers = dict(response.headers.items())
                return "", Answer(response.status, headers, response.read())
        except urllib.error.HTTPError as error:
            with error:
                answer = Answer(error.code, dict(error.headers.items()), error.read())
            return f"the server answered {error.code}", answer
        except urllib.error.URLError as error:
            return str(error.reason), None
        except (OSError, HTTPException) as error:
            return str(error) or type(error).__name__, None


def _check_url(url: str) -> str:
    parts = urllib.parse.urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NoAnswerError(
            "set PITWALL_URL (or --url) to the address of your Pitwall, such as "
            "https://pitwall.example.org"
        )
    if parts.username or parts.password:
        raise NoAnswerError("leave the password out of PITWALL_URL; the token is PITWALL_TOKEN")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _check_token(token: str) -> str:
    """Check the token here, because the standard library would quote it in its error message."""
    token = token.strip()
    if not token:
        raise NoAnswerError(
            "set PITWALL_TOKEN to an API token (Settings → API tokens), or give --token-file"
        )
    if not _TOKEN.fullmatch(token):
        raise NoAnswerError("PITWALL_TOKEN has invalid characters; copy it again")
    return token


def _may_pass(answer: Answer) -> bool:
    """Return whether to retry; 502 with a problem document is Pitwall's final response."""
    own = answer.header("content-type").startswith("application/problem+json")
    return answer.status in PASSING and not (answer.status == 502 and own)


def _fetch_progress(answer: Optional[Answer]) -> str:
    """Return the server's progress of fetching the repository; "" for any other response."""
    if answer is None or answer.status != 503:
        return ""
    try:
        problem = json.loads(answer.body)
        return str(problem["detail"]) if problem["type"] == "fetch-running" else ""
    except (ValueError, KeyError, TypeError):
        return ""


def _retry_after(answer: Optional[Answer]) -> Optional[float]:
    """Return seconds from either form of the header."""
    text = answer.header("retry-after") if answer is not None else ""
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _check_accepted(answer: Answer) -> Answer:
    if answer.status < 300:
        return answer
    if answer.status < 400:
        leads = answer.header("location") or "elsewhere"
        raise RefusedError(f"the server redirects to {leads}; set PITWALL_URL to that address")
    raise RefusedError(_read_reason(answer), answer.status)


def _read_reason(answer: Answer) -> str:
    try:
        problem = json.loads(answer.body)
        lines = [str(problem["detail"])]
        lines += [f"{each['field']}: {each['detail']}" for each in problem.get("errors", ())][1:20]
        return "\n  ".join(lines)
    except (ValueError, KeyError, TypeError):
        return f"the server answered {answer.status} without a reason; its log has more"
