"""The claims of an original report, as comparisons that own measurements can decide. No Django."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from orchestrator.benchmarks.fields import Strict
from orchestrator.reports.spec_fields import (
    Expression,
    Text,
    check_condition,
    find_metric_problem,
)

MAX_CLAIMS = 40
Relation = Literal["greater", "less", "at_least", "at_most", "within"]


class Original(Strict):
    """How the original report measured, in its words; empty if it does not say so."""

    hardware: Annotated[str, Field(max_length=500)] = ""
    versions: Annotated[str, Field(max_length=500)] = ""
    size: Annotated[str, Field(max_length=500)] = ""


class Claim(Strict):
    """A sentence or a figure of the original, in `source`, and the comparison that it states.

    The metric of each of `cases` is compared with that of each case of `than`, with its own at the
    commit before (`previous_commit`), or with `value` in `unit`. `times` is the factor of the other
    side: `at_least` and `times: 2.6` is at least 2.6 times. `within` needs `percent`.
    """

    claim: Annotated[str, Field(min_length=1, max_length=300)]
    source: Annotated[str, Field(min_length=1, max_length=200)]
    published: Text = ""
    metric: Annotated[str, Field(max_length=60)]
    cases: Annotated[Expression, Field(min_length=1)]
    relation: Relation
    than: Expression = ""
    previous_commit: bool = False
    value: Annotated[float, Field(allow_inf_nan=False)] | None = None
    unit: Annotated[str, Field(max_length=20)] | None = None
    times: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    percent: Annotated[float, Field(gt=0, lt=100)] | None = None

    @property
    def is_ratio(self) -> bool:
        """Return whether it compares two measurements, rather than one with a value."""
        return self.value is None

    @model_validator(mode="after")
    def _can_be_decided(self) -> "Claim":
        if problem := self._find_problem():
            raise ValueError(problem)
        check_condition(self.cases, "cases")
        check_condition(self.than, "than")
        return self

    def _find_problem(self) -> str:
        if problem := find_metric_problem(self.metric, "mean", self.unit):
            return problem
        sides = [bool(self.than), self.previous_commit, self.value is not None]
        if sum(sides) != 1:
            return "than: expected one of than, previous_commit and value, to compare with"
        if self.unit is not None and self.is_ratio:
            return "unit: only a value has one; a comparison of measurements is a ratio"
        if self.times != 1 and not self.is_ratio:
            return "times: write the value itself; times is for than and previous_commit"
        if (self.percent is not None) != (self.relation == "within"):
            return "percent: the relation within needs it, and no other relation has it"
        return ""
