"""Why a trial is suspect or invalid, in words."""

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.loadtools.thresholds import THRESHOLDS
from orchestrator.measurements.validity_issues import code_of, title_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownReason:
    """`message` says what was found and what to do; `known`: the page of reasons has it.

    `level` is what this reason alone makes of a trial; "" where nobody knows.
    """

    code: str
    title: str
    message: str
    level: str
    known: bool


def shown_reasons(reasons: Iterable[str]) -> list[ShownReason]:
    """`reasons` as trials keep them: `code: what was found`."""
    return [_shown(str(each)) for each in reasons]


def _shown(text: str) -> ShownReason:
    code = code_of(text)
    rule = THRESHOLDS.get(code)
    return ShownReason(
        code=code,
        title=title_of(code),
        message=text.partition(":")[2].strip(),
        level=str(rule.level) if rule else "",
        known=rule is not None,
    )
