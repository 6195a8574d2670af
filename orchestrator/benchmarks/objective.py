"""Objectives of a capacity search: `p99 < 50 ms and success >= 99 %`."""

import re
from dataclasses import dataclass
from typing import Any

_LATENCY = re.compile(r"(p[0-9]{2}(?:\.[0-9]+)?|mean|max)\s*(<=?)\s*([0-9.]+)\s*(us|ms|s)\Z")
_SHARE = re.compile(r"(success|delivered)\s*(>=?)\s*([0-9.]+)\s*%\Z")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    metric: str
    op: str
    value: float

    def as_dict(self) -> dict[str, Any]:
        return {"metric": self.metric, "op": self.op, "value": self.value}


def parse(text: str) -> tuple[Term, ...]:
    """ValueError names the term that cannot be read."""
    return tuple(_term(part.strip()) for part in text.split(" and "))


def _term(text: str) -> Term:
    if found := _LATENCY.match(text):
        name, op, value, unit = found.groups()
        return Term(metric=f"latency.{name}", op=op, value=float(value) * _SECONDS[unit])
    if found := _SHARE.match(text):
        name, op, value = found.groups()
        return Term(metric=name, op=op, value=float(value) / 100)
    raise ValueError(f"{text!r}: expected a term such as p99 < 50 ms or success >= 99 %")
