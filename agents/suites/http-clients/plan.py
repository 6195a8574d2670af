"""The work of every client, and the times of each response."""

import time
from dataclasses import dataclass
from typing import NamedTuple

now = time.perf_counter
#: Names of protocols in the clients → Pitwall's names.
SPOKEN: dict[object, str] = {11: "h1", 20: "h2", "HTTP/1.1": "h1", "HTTP/2": "h2", b"HTTP/2": "h2"}

#: How many responses a task of a multiplexing client requests at once.
AT_ONCE = 25


class Answer(NamedTuple):
    """Values of `now()`: the time of the request, and the time of the complete body."""

    start: float
    end: float
    status: int
    size: int
    version: object


@dataclass(frozen=True)
class Plan:
    """`tasks` tasks share `connections` connections at most, and fetch `each` responses one by one.

    `authorities` is a file of all CA certificates that a client must load.
    """

    host: str
    port: int
    path: str
    tasks: int
    each: int
    authorities: str
    connect_timeout_s: float
    request_timeout_s: float

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}{self.path}"
