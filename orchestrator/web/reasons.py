"""The reasons why a trial is suspect or invalid, in words."""

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.loadtools.thresholds import THRESHOLDS
from orchestrator.measurements.validity_issues import get_issue_title, parse_code


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonView:
    """`message` says what was found and what to do; `known`: the page of reasons lists it.

    `level` is the effect of this reason alone on a trial; "" if unknown.
    """

    code: str
    title: str
    message: str
    level: str
    known: bool


def build_reason_views(reasons: Iterable[str]) -> list[ReasonView]:
    """Return views of `reasons` in the stored form `code: what was found`."""
    return [_build_reason_view(str(each)) for each in reasons]


def _build_reason_view(text: str) -> ReasonView:
    code = parse_code(text)
    rule = THRESHOLDS.get(code)
    return ReasonView(
        code=code,
        title=get_issue_title(code),
        message=text.partition(":")[2].strip(),
        level=str(rule.level) if rule else "",
        known=rule is not None,
    )
