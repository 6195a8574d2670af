"""The rules for suspect and invalid trials."""

from typing import Literal

from ninja import Schema

from orchestrator.loadtools.thresholds import Threshold


class ValidityRuleOut(Schema):
    """`value` is the last good value, on the side of `bound`; null if the fact alone decides.
    `invalid` is a hard reason, `suspect` a soft one; soft reasons of one `cause` count as one."""

    code: str
    level: Literal["suspect", "invalid"]
    title: str
    value: float | None
    unit: str
    bound: Literal["most", "least"]
    cause: str
    reason: str
    advice: str


class ValidityRulePage(Schema):
    validity_rules: list[ValidityRuleOut]
    next: str | None


def build_validity_rule_out(rule: Threshold) -> ValidityRuleOut:
    names = ("code", "level", "title", "value", "unit", "bound", "cause", "reason", "advice")
    return ValidityRuleOut(**{name: getattr(rule, name) for name in names})
