"""Whether the threads of this process still end their tasks."""

import threading
import time


class Busy:
    """Counts the tasks that go on, and knows when one ended last.

    A worker in which all threads hang ends no task any more, not even the tick of each second.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._moved = time.monotonic()

    def begin(self) -> None:
        with self._lock:
            if not self._running:
                self._moved = time.monotonic()
            self._running += 1

    def end(self) -> None:
        with self._lock:
            self._running -= 1
            self._moved = time.monotonic()

    def is_stuck(self, threads: int, after_s: float) -> bool:
        """Whether all of so many threads are at work and none has ended its task for so long."""
        with self._lock:
            return self._running >= threads and time.monotonic() - self._moved >= after_s


#: Of this process.
BUSY = Busy()
