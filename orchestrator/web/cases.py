"""Cases of a definition as forms show them: what an expression may name, and what it chose."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.fields import shown_value
from orchestrator.benchmarks.matrix import CaseSpec, is_baseline
from orchestrator.benchmarks.resolved import why_unsupported
from orchestrator.benchmarks.selectors import latest_definition, spec_of
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.errors import NotFoundError
from orchestrator.runs.plans import RunPlan
from orchestrator.web.refs import chosen_benchmark

#: As many are listed; the rest is counted.
SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCase:
    """`baseline`: whether it is the 100 % of reports. `unsupported`: why the definition itself says
    that it cannot be measured."""

    key: str
    label: str
    baseline: bool
    unsupported: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCases:
    """The first cases, how many more there are, and how many of all cannot be measured."""

    shown: tuple[ShownCase, ...]
    hidden: int
    unsupported: int


def shown_cases(spec: Spec, cases: Sequence[CaseSpec]) -> ShownCases:
    reasons = [why_unsupported(spec, case.parameters) for case in cases]
    return ShownCases(
        shown=tuple(
            ShownCase(
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


def chosen_cases(plan: RunPlan) -> ShownCases:
    return shown_cases(plan.spec, plan.cases)


def names_of(spec: Spec) -> list[tuple[str, list[str]]]:
    """What an expression may name, axes first, each with its values."""
    axes = [(axis, [shown_value(value) for value in spec.values_of(axis)]) for axis in spec.matrix]
    labels: dict[str, dict[str, None]] = {}
    for axis, options in spec.options.items():
        for value in map(shown_value, spec.values_of(axis)):
            for name, text in options[value].labels.items() if value in options else ():
                labels.setdefault(name, {})[text] = None
    return [*axes, *((name, list(values)) for name, values in labels.items())]


def case_names(member: Member, key: str, plan: RunPlan | None) -> list[tuple[str, list[str]]]:
    """Those of the benchmark that a form names; none where it names none that is there."""
    if plan is not None:
        return names_of(plan.spec)
    try:
        benchmark = chosen_benchmark(member, key)
        return names_of(spec_of(latest_definition(benchmark))) if benchmark else []
    except NotFoundError:
        return []
