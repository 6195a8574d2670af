"""The work of a request, in steps between which other requests run; from Python 2.7 on.

For servers that call a function for each request. Servers with an event loop use work_async.
"""

import ctypes
import time

HELLO = b"Hello, World!"
BURNED = b"burned"
SLEPT = b"slept"
MEGABYTE = b"x" * 1000000
NOT_HERE = b"not here"

STEPS = 20
STEP_S = 0.0075 / STEPS

# From Linux's time.h, for Python 2, whose module time lacks them.
CLOCK_MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 1)
CLOCK_THREAD_CPUTIME_ID = getattr(time, "CLOCK_THREAD_CPUTIME_ID", 3)


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def _clock_gettime(clock):
    found = _Timespec()
    ctypes.CDLL(None).clock_gettime(clock, ctypes.byref(found))
    return found.seconds + found.nanoseconds * 1e-9


clock_gettime = getattr(time, "clock_gettime", _clock_gettime)


def now():
    return clock_gettime(CLOCK_MONOTONIC)


def burn_step():
    """Use one step of CPU time of this thread."""
    end = clock_gettime(CLOCK_THREAD_CPUTIME_ID) + STEP_S
    while clock_gettime(CLOCK_THREAD_CPUTIME_ID) < end:
        pass


def left(start, step):
    """Return the time until the end of this step of a request begun at `start`; below 0 if late."""
    return start + step * STEP_S - now()


def burn():
    for _ in range(STEPS):
        burn_step()
        time.sleep(0)  # To other threads, or to other greenlets where time.sleep was patched.
    return BURNED


def sleep():
    start = now()
    for step in range(1, STEPS + 1):
        time.sleep(max(0.0, left(start, step)))
    return SLEPT


def hello():
    return HELLO


def megabyte():
    return MEGABYTE


#: The function for the body of a path.
ANSWERS = {"/hello": hello, "/burn": burn, "/sleep": sleep, "/mb": megabyte}
