"""Memory that a long-lived process returns to the system."""

import ctypes
import gc
import linecache

# From glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8

#: Blocks of this size and larger return to the system as soon as they are freed. A load tool that
#: is read into memory to be sent has 24 MiB. Arrays of a chart are smaller and stay cheap.
LARGE_BYTES = 2**20
#: Number of arenas that threads allocate from. The default of glibc is eight per processor.
ARENAS = 2


def configure_malloc() -> None:
    """Keep threads from hoarding freed memory. Without glibc this does nothing.

    By default glibc raises the threshold for large blocks when one is freed. Later blocks of that
    size then come from an arena, which keeps its memory for each thread.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_ARENA_MAX, ARENAS)
        set_option(_MMAP_THRESHOLD, LARGE_BYTES)
        set_option(_TRIM_THRESHOLD, LARGE_BYTES)


def return_free_pages() -> None:
    """Give free pages between used blocks back to the system, which takes some milliseconds.

    By default glibc returns only the free end of an arena, so that fragmentation makes a process
    grow over weeks.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def tidy_memory() -> None:
    """Free what an idle process keeps, and give it back. Takes some milliseconds.

    Python starts a full garbage collection only after enough new objects. In a quiet process that
    is late: Celery's copy of a traceback, which refers to itself, has about 14,000 tuples.
    """
    # Source files that Python read to format tracebacks. After an hour of faults a worker kept
    # 45,730 lines, about 4.5 MiB.
    linecache.clearcache()
    gc.collect()
    return_free_pages()
