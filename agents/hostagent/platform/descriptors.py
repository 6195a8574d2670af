"""The open file descriptors of this process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container


def close_others(kept: Container[int]) -> None:
    """Close all file descriptors but the standard streams and these."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) not in kept:
            with contextlib.suppress(OSError):  # the descriptor of the listing itself
                os.close(int(name))
