"""The interface of a forge's API."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.transport.http import DeliveryError, send

#: A pull request in the API of a forge is some 30 kB.
MOST_BYTES = 2_000_000


class ForgeRefusedError(DeliveryError):
    """The forge refused a request. `status` is the HTTP status of its answer."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status

    @property
    def passing(self) -> bool:
        """Whether a retry may help."""
        return self.status >= 500 or self.status in {408, 429}


@dataclass(frozen=True, slots=True, kw_only=True)
class PullFacts:
    head_sha: str
    base_branch: str
    from_fork: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status of a commit: `state` is pending, success, failure or error."""

    state: str
    context: str
    text: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forge(ABC):
    """Raises DeliveryError if the forge does not answer, ForgeRefusedError if it refuses."""

    api_url: str
    repository: str
    token: str
    allowed: Sequence[str] = ()

    @abstractmethod
    def pull_request(self, number: int) -> PullFacts: ...

    @abstractmethod
    def pull_ref(self, number: int) -> str:
        """Return the ref of the head of a pull request, also of one from a fork."""

    @abstractmethod
    def write_comment(self, number: int, comment_id: str, text: str) -> str:
        """Change the comment, or create one if the id is empty. Return its id."""

    @abstractmethod
    def set_status(self, sha: str, status: Status) -> None: ...

    @abstractmethod
    def credentials(self) -> dict[str, str]:
        """Return the headers that authenticate a request."""

    def call(self, method: str, path: str, data: dict[str, Any] | None = None) -> Any:
        """Return the JSON of the answer."""
        headers = {**self.credentials(), "Accept": "application/json", "User-Agent": "Pitwall"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        answer = send(
            method,
            self.api_url + path,
            body=b"" if data is None else json.dumps(data).encode(),
            headers=headers,
            allowed=self.allowed,
            most_bytes=MOST_BYTES,
        )
        if not answer.ok:
            words = answer.body[:200].decode(errors="replace").replace("\0", "")
            raise ForgeRefusedError(
                f"{method} {path} was answered with {answer.status}: {words}", answer.status
            )
        try:
            return json.loads(answer.body or b"null")
        except ValueError as error:
            raise ForgeRefusedError(f"{method} {path}: the answer is not JSON", 502) from error
