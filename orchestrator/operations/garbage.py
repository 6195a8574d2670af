"""Thresholds of Python's garbage collector."""

import gc

#: Arguments of `gc.set_threshold`. The first is the number of new objects that starts a collection
#: of generation 0. The others are the number of collections of one generation before the next older
#: one is collected. Python's defaults are 700, 10 and 10. A page of Pitwall creates more objects
#: than 700. With 20,000, 20 and 20 garbage waited for minutes, since Django's models refer to each
#: other.
WEB_THRESHOLDS = 20_000, 5, 5
#: A full collection takes some milliseconds, since loaded objects are excluded from it.
ENGINE_THRESHOLDS = 700, 10, 2


def limit_garbage(process: str) -> None:
    """Set the thresholds of a `web`, `worker`, `background` or `beat`.

    Call it when all code is loaded.
    """
    exclude_loaded_objects()
    gc.set_threshold(*(WEB_THRESHOLDS if process == "web" else ENGINE_THRESHOLDS))


def exclude_loaded_objects() -> None:
    """Exclude all objects that exist now from garbage collection.

    Python starts a full collection only if the objects that survived since the last one are more
    than a quarter of the objects known then. With 260,000 loaded objects that is late.
    """
    gc.collect()
    gc.freeze()
    # This updates the object count that Python keeps from its last full collection; freeze() does
    # not.
    gc.collect()
