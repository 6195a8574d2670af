"""What every client is told to do, and what it tells of each answer."""

import time
from dataclasses import dataclass
from typing import NamedTuple

now = time.perf_counter
#: How clients name the protocol of an answer, and how Pitwall does.
SPOKEN: dict[object, str] = {11: "h1", 20: "h2", "HTTP/1.1": "h1", "HTTP/2": "h2", b"HTTP/2": "h2"}

#: Answers that a task of a multiplexing client has asked for at a time.
AT_ONCE = 25


class Answer(NamedTuple):
    """Of the moments of `now()`: when it was asked for, and when its body was there."""

    start: float
    end: float
    status: int
    size: int
    version: object


@dataclass(frozen=True)
class Plan:
    """`tasks` tasks share at most so many connections and fetch `each` answers one by one.

    `authorities` is a file of all CA certificates that a client has to load.
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
