"""Parts of pages that were made before, kept in this process while nothing in them moved.

A part is known by its key (what was asked for, by whom) and its mark (what it was made of, as one
cheap query says): another mark makes it anew. Nothing with a form is kept: those hold secrets.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

#: What a mark does not tell, such as another name of a profile, is seen after so long.
KEEP_S = 300.0
MOST_PARTS = 60

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made(Generic[Part]):
    mark: str
    part: Part
    at: float


_parts: OrderedDict[Hashable, _Made] = OrderedDict()
_lock = Lock()


def kept(key: Hashable, mark: str | None, make: Callable[[], Part]) -> Part:
    """The part of this key; made now where it is not known with this mark, or there is no mark."""
    if mark is None:
        return make()
    with _lock:
        known = _parts.get(key)
    if known is not None and known.mark == mark and time.monotonic() - known.at < KEEP_S:
        return known.part
    part = make()
    with _lock:
        _parts[key] = _Made(mark=mark, part=part, at=time.monotonic())
        _parts.move_to_end(key)
        while len(_parts) > MOST_PARTS:
            _parts.popitem(last=False)
    return part


def forget_parts() -> None:
    with _lock:
        _parts.clear()
