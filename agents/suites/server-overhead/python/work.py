"""What a request costs, in steps between which others have their turn; from Python 2.7 on.

For servers that call a function for each request. Those with an event loop take work_async.
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

# Of Linux's time.h, for Python 2, whose module time does not know them.
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
    """One step of the CPU time of this thread."""
    end = clock_gettime(CLOCK_THREAD_CPUTIME_ID) + STEP_S
    while clock_gettime(CLOCK_THREAD_CPUTIME_ID) < end:
        pass


def left(start, step):
    """How long until the end of this step of a request begun at `start`; negative when late."""
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


#: What makes the body for a path.
ANSWERS = {"/hello": hello, "/burn": burn, "/sleep": sleep, "/mb": megabyte}
