"""Pauses in which somebody is still listening."""

from __future__ import annotations

import time
from collections.abc import Callable


def rest(until: float, beat: Callable[[], None]) -> None:
    """Until that time of the monotonic clock, with a beat now and then."""
    while (left := until - time.monotonic()) > 0:
        beat()
        time.sleep(min(0.05, left))
