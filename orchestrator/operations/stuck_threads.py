"""Detects threads that no longer finish their work, and a main loop that no longer turns."""

import threading
import time


class BusyThread:
    """Counts the tasks or requests that are running, and remembers when the last one ended.

    If all threads of a worker hang, no task ends any more, not even the tick of each second.
    `threads`: the number of threads of a web process, which sets it itself.
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
        """Note that a running task made progress, such as a client that sends or reads."""
        with self._lock:
            self._moved = time.monotonic()

    def is_stuck(self, threads: int, after_s: float) -> bool:
        """Return whether `threads` or more tasks run and none ended or progressed for `after_s`."""
        with self._lock:
            return self._running >= threads and time.monotonic() - self._moved >= after_s


class MainLoop:
    """Remembers when the main loop last turned. A loop that never turned is not watched."""

    def __init__(self) -> None:
        self._turned: float | None = None
        self._is_ending = False

    def note_turn(self) -> None:
        self._turned = time.monotonic()

    def restart_clock(self) -> None:
        """Restart the clock: something else kept the loop waiting."""
        if self._turned is not None:
            self.note_turn()

    def end(self) -> None:
        """Stop watching: the loop stops turning before the last tasks have ended."""
        self._is_ending = True

    def is_stuck(self, after_s: float) -> bool:
        if self._is_ending:
            return False
        return self._turned is not None and time.monotonic() - self._turned >= after_s


#: For this process.
BUSY = BusyThread()
MAIN_LOOP = MainLoop()
