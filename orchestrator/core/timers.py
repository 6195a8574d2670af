"""A time limit for a block of code that waits for a remote side."""

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def call_after(seconds: float, function: Callable[[], object]) -> Iterator[None]:
    """Call the function in a thread of its own if the block still runs after `seconds`.

    A socket's timeout limits one read. A hostile server that sends single bytes restarts it each
    time, so the function has to close the connection.
    """
    timer = threading.Timer(max(0.0, seconds), function)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
