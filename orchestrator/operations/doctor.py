"""Checks that find what is wrong with a deployment and how to fix it.

Each check yields one or more `Finding`s. `FAILED` means that data may be lost, that somebody may
get in, or that Pitwall does not work. `WARNED` deserves attention.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    OK = "ok"
    WARNED = "warning"
    FAILED = "FIX"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check.

    `remedy` says what to do; it is empty if nothing needs to be done.
    """

    part: str
    outcome: Outcome
    message: str
    remedy: str = ""


Check = Callable[[], Iterator[Finding]]


def build_ok(part: str, message: str) -> Finding:
    return Finding(part=part, outcome=Outcome.OK, message=message)


def build_warning(part: str, message: str, remedy: str) -> Finding:
    return Finding(part=part, outcome=Outcome.WARNED, message=message, remedy=remedy)


def build_failure(part: str, message: str, remedy: str) -> Finding:
    return Finding(part=part, outcome=Outcome.FAILED, message=message, remedy=remedy)


def run_checks(checks: tuple[Check, ...]) -> Iterator[Finding]:
    """Yield the findings of all checks.

    A check that raises yields a finding too; the others still run.
    """
    for check in checks:
        try:
            yield from check()
        except Exception as error:
            part = check.__name__.removeprefix("check_").replace("_", " ")
            yield build_failure(part, f"could not be checked: {error}", "See the message.")
