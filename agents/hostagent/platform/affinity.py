"""The CPUs of the agent itself, which its children do not inherit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from typing import Optional

_HAS_AFFINITY = hasattr(os, "sched_setaffinity")
#: What the agent may use, once it has been pinned.
_allowed: Optional[frozenset[int]] = None


def pin_agent(cpus: Collection[int]) -> None:
    """Run the agent on these CPUs only; without any, on all that it may use.

    A host that refuses it has the agent on other CPUs, which `read_own_cpus` tells.
    """
    global _allowed
    if not _HAS_AFFINITY or (_allowed is None and not cpus):
        return
    _allowed = _allowed or frozenset(os.sched_getaffinity(0))
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, cpus or _allowed)


def set_child_affinity(cpus: Optional[Collection[int]]) -> None:
    """Let the calling child run on these CPUs; None = on all that the agent may use.

    Raises OSError if it may run on none of them.
    """
    wanted = _allowed if cpus is None else cpus
    if _HAS_AFFINITY and wanted is not None:
        os.sched_setaffinity(0, wanted)


def read_own_cpus() -> Optional[frozenset[int]]:
    """Return the CPUs that the agent runs on; None if the system does not report them."""
    return frozenset(os.sched_getaffinity(0)) if _HAS_AFFINITY else None
