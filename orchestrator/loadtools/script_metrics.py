"""Metrics that a definition's own load program reports, under keys that start with `script.`.

The end of the key is its unit: `script.upload_s`, `script.page_bytes`, `script.pages_per_s`,
`script.hit_ratio`, `script.retries_count`. `script.score_higher` and `script.score_lower` are plain
numbers of which higher or lower ones are better.
"""

import re
from typing import Literal, NamedTuple

PREFIX = "script."

_KEY = re.compile(r"script\.([a-z][a-z0-9_]{0,39}?)_(per_s|s|bytes|ratio|count|higher|lower)\Z")


class Suffix(NamedTuple):
    """`judged`: the better direction is known, so commits can be compared by the metric."""

    unit: Literal["1/s", "s", "B", "ratio", "count"]
    better: Literal["higher", "lower"]
    judged: bool


SUFFIXES = {
    "per_s": Suffix("1/s", "higher", True),
    "s": Suffix("s", "lower", True),
    "bytes": Suffix("B", "lower", True),
    # Whether more is better is unknown: it may be a share of hits or errors, a number of pages or
    # retries.
    "ratio": Suffix("ratio", "higher", False),
    "count": Suffix("count", "lower", False),
    "higher": Suffix("count", "higher", True),
    "lower": Suffix("count", "lower", True),
}


class OwnMetric(NamedTuple):
    """A metric that is defined by its key."""

    title: str
    suffix: Suffix


def parse_own_metric(key: str) -> OwnMetric | None:
    """Return None if the key is not `script.<name>` with a unit at its end."""
    match = _KEY.match(key)
    if match is None:
        return None
    name = match[1].replace("_", " ")
    return OwnMetric(title=f"Script: {name}", suffix=SUFFIXES[match[2]])
