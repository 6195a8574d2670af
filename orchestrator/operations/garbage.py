"""How soon a process frees objects that refer to each other."""

import gc

#: The first search covers new objects, and begins when there are so many. So many first searches
#: precede a second, which covers older objects, and so many of these a full search. Python's own
#: values are 700, 10 and 10. A page of Pitwall has more new objects; with 20,000, 20 and 20 garbage
#: waited for minutes, since Django's models refer to each other.
WEB_THRESHOLDS = 20_000, 5, 5
#: A full search takes some milliseconds, since loaded objects are excluded from it.
ENGINE_THRESHOLDS = 700, 10, 2


def limit_garbage(process: str) -> None:
    """`web`, `worker`, `fetcher` or `beat`; called when everything is loaded."""
    exclude_loaded_objects()
    gc.set_threshold(*(WEB_THRESHOLDS if process == "web" else ENGINE_THRESHOLDS))


def exclude_loaded_objects() -> None:
    """Excludes all objects that exist now from searches for garbage.

    Python searches all objects only when those that survived other searches since are more than a
    quarter of the objects that it knew then. With 260,000 loaded objects, garbage waits for that.
    """
    gc.collect()
    gc.freeze()
    # Python knows the number of objects from its last full search; freeze() does not change it.
    gc.collect()
