"""What a process does with memory that it has freed."""

import ctypes

# From glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8

#: Blocks of this size and more go back to the system as soon as they are freed: a load tool that is
#: read to be sent has 24 MiB. Arrays of a chart are smaller and stay cheap.
LARGE_BYTES = 2**20
#: Of which threads take their blocks; eight for each processor otherwise.
ARENAS = 2


def give_freed_memory_back() -> None:
    """Lets no thread keep what another one could use; without glibc it does nothing.

    By itself glibc keeps, for each thread, the most that it ever needed: once a large block was
    freed, it takes later ones of that size from memory that is not given back.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_ARENA_MAX, ARENAS)
        set_option(_MMAP_THRESHOLD, LARGE_BYTES)
        set_option(_TRIM_THRESHOLD, LARGE_BYTES)


def give_free_pages_back() -> None:
    """Gives the system what lies free between blocks in use; some milliseconds, for now and then.

    By itself glibc gives back no more than the free end of an arena, so that a process that works
    for weeks grows by what falls between.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
