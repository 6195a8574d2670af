"""The objective of a search: the conditions under which a server can serve a rate.

    p99 < 50 ms and success >= 99 %

Terms are joined by "and"; all must be true.

| metric | operators | value |
|---|---|---|
| p50 to p99.99, mean, max: latency of good responses | < <= | a duration in us, ms or s |
| success: share of good responses | >= > | a percentage |
| delivered: good responses as a share of the requested rate | >= > | a percentage |

No Django.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.loadtools.model import SUPPORTING_REQUESTS

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SHARES = ("success", "delivered")
_POWERS = {"us": -6, "µs": -6, "ms": -3, "s": 0}

#: An objective that needs a smaller share of the answers needs this share to know a percentile.
_LEAST_DELIVERED = 0.01

_TERM = re.compile(r"([^\s<>=]+)\s*([<>=]+)\s*(.*)", re.DOTALL)
_PERCENTILE = re.compile(r"p([0-9]{2}(?:\.[0-9]{1,2})?)")
_VALUE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-zµ%]+)")
_EXAMPLE = "'p99 < 50 ms and success >= 99 %'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """`metric` as in SEARCH of the agent's protocol; `value` in seconds or as a share of 1."""

    metric: str
    op: str
    value: float

    def as_dict(self) -> dict[str, str | float]:
        """Return the term in the form of the agent's plan."""
        return {"metric": self.metric, "op": self.op, "value": self.value}


#: Default terms for metrics that the text does not mention: a server cannot serve a rate that it
#: rejects.
ALWAYS = (
    Term(metric="success", op=">=", value=0.99),
    Term(metric="delivered", op=">=", value=0.99),
)


def parse(text: str) -> tuple[Term, ...]:
    """Return the terms in the order of the text, then those of ALWAYS that it does not mention.

    Raise ValueError with the invalid term and the expected form.
    """
    if not text.strip():
        raise ValueError(f"expected an objective such as {_EXAMPLE}, got nothing")
    terms = [_parse_term(part.strip()) for part in re.split(r"\band\b", text)]
    metrics = [term.metric for term in terms]
    for metric in metrics:
        if metrics.count(metric) > 1:
            raise ValueError(f"{_name(metric)} is given twice: keep the stricter term")
    return (*terms, *(term for term in ALWAYS if term.metric not in metrics))


def count_needed_requests(terms: Sequence[Term]) -> int:
    """Return how many requests must be due in a probe, so that it knows each percentile.

    Each percentile must be supported (`is_supported`) by the answers. If fewer are answered than
    must be delivered, the probe fails without regard to the percentiles.
    """
    delivered = min(term.value for term in terms if term.metric == "delivered")
    percents = [float(term.metric[9:]) for term in terms if term.metric.startswith("latency.p")]
    answers = max((100 * SUPPORTING_REQUESTS / (100 - each) for each in percents), default=1.0)
    # Rounded first, because the quotient of 99.9 % is slightly more than 10,000.
    return math.ceil(round(answers / max(_LEAST_DELIVERED, delivered), 6))


def _parse_term(text: str) -> Term:
    parts = _TERM.fullmatch(text)
    if parts is None:
        raise ValueError(
            f"{text!r} is not a term: expected metric, operator, value, as in {_EXAMPLE}"
        )
    name, op, value = parts.groups()
    metric = _parse_metric(name, text)
    shares = metric in _SHARES
    allowed = (">=", ">") if shares else ("<", "<=")
    if op not in allowed:
        raise ValueError(f"in {text!r}: expected {' or '.join(allowed)} after {name}, got {op}")
    return Term(metric=metric, op=op, value=(_share if shares else _parse_seconds)(value, text, op))


def _parse_metric(name: str, text: str) -> str:
    if name in _SHARES:
        return name
    percentile = _PERCENTILE.fullmatch(name)
    if percentile is not None and float(percentile[1]) >= 50:
        return f"latency.p{float(percentile[1]):g}"
    if name in ("mean", "max"):
        return f"latency.{name}"
    raise ValueError(
        f"in {text!r}: expected p50 to p99.99, mean, max, success or delivered, got {name!r}"
    )


def _parse_seconds(value: str, text: str, _op: str) -> float:
    match = _VALUE.fullmatch(value)
    if match is None or match[2] not in _POWERS or not float(match[1]):
        raise ValueError(
            f"in {text!r}: expected a duration above 0 in us, ms or s, such as 50 ms, got {value!r}"
        )
    # Parsed with its exponent instead of divided: 99.9 / 100 is not 0.999.
    return float(f"{match[1]}e{_POWERS[match[2]]}")


def _share(value: str, text: str, op: str) -> float:
    match = _VALUE.fullmatch(value)
    if match is None or match[2] != "%" or not _OPERATORS[op](100, float(match[1])):
        most = "up to" if op == ">=" else "under"
        raise ValueError(
            f"in {text!r}: expected a percentage {most} 100 %, such as 99 %, got {value!r}"
        )
    return float(f"{match[1]}e-2")


def _name(metric: str) -> str:
    return metric.removeprefix("latency.")
