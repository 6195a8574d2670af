"""Whether the threads of this process still end what they do, and whether its main loop turns."""

import threading
import time


class Busy:
    """Counts the tasks or requests that go on, and knows when one ended last.

    A worker in which all threads hang ends no task any more, not even the tick of each second.
    `threads`: of a web process, which knows its own number.
    """

    def __init__(self) -> None:
        self.threads: int | None = None
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

    def note_progress(self) -> None:
        """One that goes on has got further: a client of the web server that sends or reads."""
        with self._lock:
            self._moved = time.monotonic()

    def is_stuck(self, threads: int, after_s: float) -> bool:
        """Whether all of so many threads are at work and none has ended its task for so long."""
        with self._lock:
            return self._running >= threads and time.monotonic() - self._moved >= after_s


class MainLoop:
    """Knows when the main loop turned last; a loop that was never noted is not watched."""

    def __init__(self) -> None:
        self._turned: float | None = None
        self._is_ending = False

    def note_turn(self) -> None:
        self._turned = time.monotonic()

    def excuse(self) -> None:
        """What it waited until now does not count: others were the cause."""
        if self._turned is not None:
            self.note_turn()

    def end(self) -> None:
        """It is watched no more: it stops turning before the last tasks have ended."""
        self._is_ending = True

    def is_stuck(self, after_s: float) -> bool:
        if self._is_ending:
            return False
        return self._turned is not None and time.monotonic() - self._turned >= after_s


#: Of this process.
BUSY = Busy()
MAIN_LOOP = MainLoop()
