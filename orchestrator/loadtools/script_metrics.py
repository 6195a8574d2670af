"""Metrics that a definition's own load tells, under keys that begin with `script.`.

The end of the key is its unit: `script.upload_s`, `script.page_bytes`, `script.pages_per_s`,
`script.hit_ratio`, `script.retries_count`.
"""

import re
from typing import Literal, NamedTuple

PREFIX = "script."

_KEY = re.compile(r"script\.([a-z][a-z0-9_]{0,39}?)_(per_s|s|bytes|ratio|count)\Z")


class Suffix(NamedTuple):
    """`judged`: which way is better is known, so that commits can be compared by it."""

    unit: Literal["1/s", "s", "B", "ratio", "count"]
    better: Literal["higher", "lower"]
    judged: bool


SUFFIXES = {
    "per_s": Suffix("1/s", "higher", True),
    "s": Suffix("s", "lower", True),
    "bytes": Suffix("B", "lower", True),
    # A share of hits or of errors, a number of pages or of retries: nobody but the author knows.
    "ratio": Suffix("ratio", "higher", False),
    "count": Suffix("count", "lower", False),
}


class OwnMetric(NamedTuple):
    """What a key says of itself."""

    title: str
    suffix: Suffix


def own_metric(key: str) -> OwnMetric | None:
    """None where the key is no `script.<name>` with a unit at its end."""
    found = _KEY.match(key)
    if found is None:
        return None
    name = found[1].replace("_", " ")
    return OwnMetric(title=f"Script: {name}", suffix=SUFFIXES[found[2]])
