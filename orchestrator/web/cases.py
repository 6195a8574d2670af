"""Cases of a definition for forms: the names for an expression, and the cases that it selects."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.fields import format_axis_value
from orchestrator.benchmarks.matrix import CaseSpec, find_unsupported_reason, is_baseline
from orchestrator.benchmarks.selectors import load_latest_definition, read_spec
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.errors import NotFoundError
from orchestrator.runs.plans import RunPlan
from orchestrator.web.refs import load_chosen_benchmark

#: The most cases that are listed; the others are counted.
SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseItem:
    """`baseline`: whether it is the 100 % of reports.

    `unsupported`: why it cannot be measured, according to the definition.
    """

    key: str
    label: str
    baseline: bool
    unsupported: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseList:
    """The first cases, how many more there are, and how many of all cannot be measured."""

    shown: tuple[CaseItem, ...]
    hidden: int
    unsupported: int


def list_cases(spec: Spec, cases: Sequence[CaseSpec]) -> CaseList:
    reasons = [find_unsupported_reason(spec, case.parameters) for case in cases]
    return CaseList(
        shown=tuple(
            CaseItem(
                key=case.key,
                label=case.label,
                baseline=is_baseline(spec, case.parameters),
                unsupported=reason,
            )
            for case, reason in zip(cases[:SHOWN], reasons, strict=False)
        ),
        hidden=max(0, len(cases) - SHOWN),
        unsupported=sum(map(bool, reasons)),
    )


def list_planned_cases(plan: RunPlan) -> CaseList:
    return list_cases(plan.spec, plan.cases)


def list_expression_names(spec: Spec) -> list[tuple[str, list[str]]]:
    """Return the names for an expression with their values, axes first."""
    axes = [
        (axis, [format_axis_value(value) for value in spec.list_values(axis)])
        for axis in spec.matrix
    ]
    labels: dict[str, dict[str, None]] = {}
    for axis, options in spec.options.items():
        for value in map(format_axis_value, spec.list_values(axis)):
            for name, text in options[value].labels.items() if value in options else ():
                labels.setdefault(name, {})[text] = None
    return [*axes, *((name, list(values)) for name, values in labels.items())]


def load_expression_names(
    member: Member, key: str, plan: RunPlan | None
) -> list[tuple[str, list[str]]]:
    """Return those of the benchmark that a form names; none if it names no existing one."""
    if plan is not None:
        return list_expression_names(plan.spec)
    try:
        benchmark = load_chosen_benchmark(member, key)
        return (
            list_expression_names(read_spec(load_latest_definition(benchmark))) if benchmark else []
        )
    except NotFoundError:
        return []
