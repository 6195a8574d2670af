"""A cache of parts of pages and answers in this process.

A part has a key (its kind, the parameters, the user) and a mark, a value of one cheap query that
changes with the data. Another mark makes the part again. Concurrent requests for a part wait for
the first one. Nothing with a form is cached: forms contain secrets.
"""

import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

#: Longest age of a part: the ages in it ("2 h ago") grow.
KEEP_S = 300.0
#: Per kind, so that many histories do not push out the front page.
MOST_PARTS = 40

Part = TypeVar("Part")
Key = tuple[str, *tuple[Hashable, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CachedPart(Generic[Part]):
    mark: str
    part: Part
    at: float


class _Lock:
    """Held by the thread that makes a part."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = Lock()


_parts: defaultdict[str, OrderedDict[Key, _CachedPart[Any]]] = defaultdict(OrderedDict)
_locks: WeakValueDictionary[Key, _Lock] = WeakValueDictionary()
_lock = Lock()


def get_or_make_part(key: Key, mark: str | None, make: Callable[[], Part]) -> Part:
    """Return the part of this key.

    Make it if it is not cached with this mark, or if `mark` is None.

    The key starts with the part's kind. `make` must not ask for the same part.
    """
    if mark is None:
        return make()
    with _lock:
        held = _locks.setdefault(key, _Lock())
        known: _CachedPart[Part] | None = _parts[key[0]].get(key)
    if known is not None and _counts(known, mark):
        return known.part
    with held.lock:
        with _lock:
            known = _parts[key[0]].get(key)
        if known is not None and _counts(known, mark):
            return known.part
        part = make()
        _store_part(key, _CachedPart(mark=mark, part=part, at=time.monotonic()))
    return part


def forget_parts() -> None:
    with _lock:
        _parts.clear()


def _counts(known: _CachedPart[Any], mark: str) -> bool:
    return known.mark == mark and time.monotonic() - known.at < KEEP_S


def _store_part(key: Key, made: _CachedPart[Any]) -> None:
    with _lock:
        same_kind = _parts[key[0]]
        same_kind[key] = made
        same_kind.move_to_end(key)
        while len(same_kind) > MOST_PARTS:
            same_kind.popitem(last=False)
