"""Resources that the connections of a process share, with limits in total and per client."""

from collections import Counter
from dataclasses import dataclass
from threading import Lock

#: Requests that a thread handles or that wait for one.
MOST_REQUESTS = 1_000
#: Bytes of those, and of requests that wait for a change.
MOST_REQUEST_BYTES = 64 * 2**20
#: Bytes of answers that clients have not read yet.
MOST_OUTGOING_BYTES = 64 * 2**20
#: Probes that wait for the thread of their path.
MOST_PROBES = 8


class Share:
    """An amount that many clients take from, each at most half of it. Safe for several threads."""

    def __init__(self, most: int) -> None:
        self._lock = Lock()
        self._most, self._most_of_one = most, max(1, most // 2)
        self._taken: Counter[str] = Counter()
        self.total = 0

    def take(self, client: str, amount: int = 1) -> bool:
        """Take `amount` and return True if that much is left. Otherwise take nothing."""
        with self._lock:
            own = self._taken[client] + amount
            if self.total + amount > self._most or own > self._most_of_one:
                return False
            self._taken[client] = own
            self.total += amount
            return True

    def take_anyway(self, client: str, amount: int) -> None:
        with self._lock:
            self._taken[client] += amount
            self.total += amount

    def free(self, client: str, amount: int = 1) -> None:
        with self._lock:
            self.total -= amount
            self._taken[client] -= amount
            if self._taken[client] <= 0:
                del self._taken[client]

    def is_full_for(self, client: str) -> bool:
        with self._lock:
            own = self._taken.get(client, 0)
            return self.total >= self._most or own >= self._most_of_one


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of one process. `slow`: threads that wait for a client to read its answer.

    `uploads`: threads that read a body.
    """

    requests: Share
    request_bytes: Share
    outgoing: Share
    slow: Share
    uploads: Share

    @classmethod
    def for_threads(cls, threads: int) -> "Shares":
        return cls(
            requests=Share(MOST_REQUESTS),
            request_bytes=Share(MOST_REQUEST_BYTES),
            outgoing=Share(MOST_OUTGOING_BYTES),
            slow=Share(max(1, threads // 2)),
            uploads=Share(max(1, threads // 4)),
        )
