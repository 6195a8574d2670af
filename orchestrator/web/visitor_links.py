"""Decide which pages a visitor may open, and which links lead to one of them."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.urls import Resolver404, resolve

from orchestrator.accounts.visitors import Visitor


def is_open(visitor: Visitor, view: object, name: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether a visitor may open a page; `name` is that of its URL."""
    texts = {key: str(value) for key, value in arguments.items()}
    return getattr(view, "open_to_visitors", False) and visitor.may_open(name, texts)


def is_open_to_visitor(visitor: Visitor, address: str) -> bool:
    """Return whether a visitor may follow a link.

    Addresses without a path stay on the same page.
    """
    path = re.split("[?#]", address, maxsplit=1)[0]
    if path in ("", "/") or not path.startswith("/"):
        return True
    if not path.startswith(visitor.place):
        return False
    view, name, arguments = _resolve_path(path[len(visitor.place) - 1 :])
    return is_open(visitor, view, name, arguments)


@lru_cache(maxsize=4096)
def _resolve_path(path: str) -> tuple[object, str, Mapping[str, Any]]:
    try:
        match = resolve(path)
    except Resolver404:
        return None, "", {}
    return match.func, match.url_name or "", match.kwargs
