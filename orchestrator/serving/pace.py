"""How fast a client must be, and how much a process keeps for slow ones."""

import time
from dataclasses import dataclass
from threading import BoundedSemaphore, Lock

#: From the first byte of a request to the end of its head.
HEAD_S = 10.0
#: What a body or an answer takes whatever its length, and the least rate beyond that.
GRACE_S = 10.0
LEAST_BYTES_A_SECOND = 32 * 1024
#: A new connection that sends nothing, as browsers open them ahead.
SILENT_S = 20.0
#: A connection that was answered and closed waits so long for its client's end of it.
LINGER_S = 2.0
#: What a process keeps of unfinished requests, and of answers that clients have not taken yet.
MOST_INCOMING_BYTES = 64 * 2**20
MOST_OUTGOING_BYTES = 64 * 2**20
#: What one answer may have unsent before its thread waits for the client.
MOST_UNSENT_BYTES = 2 * 2**20
#: The same, once the process keeps MOST_OUTGOING_BYTES.
LEAST_UNSENT_BYTES = 64 * 1024


def seconds_for(size: int) -> float:
    """How long `size` bytes may take to come or to go."""
    return GRACE_S + size / LEAST_BYTES_A_SECOND


class Amount:
    """A number that threads change together."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.value = 0

    def add(self, number: int) -> None:
        with self._lock:
            self.value += number


@dataclass(frozen=True, slots=True)
class Means:
    """What the connections of a process share. `slow`: threads that may wait for clients."""

    outgoing: Amount
    slow: BoundedSemaphore

    @classmethod
    def for_threads(cls, threads: int) -> "Means":
        return cls(Amount(), BoundedSemaphore(max(1, threads // 2)))


def now() -> float:
    return time.monotonic()
