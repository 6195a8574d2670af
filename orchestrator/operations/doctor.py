"""What is wrong with a deployment and how to fix it, asked of the parts themselves.

Each check tells one `Finding` or several. `FAILED` is what will lose data, let somebody in or keep
Pitwall from working; `WARNED` is worth attention.
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
    """`remedy` is what to do; empty where nothing is to be done."""

    part: str
    outcome: Outcome
    said: str
    remedy: str = ""


Check = Callable[[], Iterator[Finding]]


def ok(part: str, said: str) -> Finding:
    return Finding(part=part, outcome=Outcome.OK, said=said)


def warned(part: str, said: str, remedy: str) -> Finding:
    return Finding(part=part, outcome=Outcome.WARNED, said=said, remedy=remedy)


def failed(part: str, said: str, remedy: str) -> Finding:
    return Finding(part=part, outcome=Outcome.FAILED, said=said, remedy=remedy)


def examined(checks: tuple[Check, ...]) -> Iterator[Finding]:
    """What all checks found; one that breaks down is a finding too, and the next ones go on."""
    for check in checks:
        try:
            yield from check()
        except Exception as error:
            part = check.__name__.replace("_", " ").strip()
            yield failed(part, f"could not be checked: {error}", "Look into the message.")
