"""Summary of a definition's text, or its fault with the location. No Django."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.benchmarks.load_specs import (
    check_loads,
    estimate_prepare_s,
    estimate_trials_s,
    get_tool,
)
from orchestrator.benchmarks.matrix import CaseSpec, build_resolver, expand, find_unsupported_reason
from orchestrator.benchmarks.places import find_line
from orchestrator.benchmarks.spec import Spec, parse
from orchestrator.core.errors import InvalidRequestError

#: Lines shown before and after the faulty one.
AROUND = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    number: int
    text: str
    wrong: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`path` leads into the definition, `line` (from 1) into its text; either may be unknown.

    `others`: further faults of the same text, without excerpts.
    """

    path: str
    expectation: str
    line: int | None
    excerpt: tuple[Line, ...] = ()
    others: tuple["Fault", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A definition that can be saved.

    `round_s`: the duration of one round of all cases for one commit. `tools`: the load tools with
    the number of cases of each. `requires`: program → versions → the values of axes that require it
    (none: every case does). `unsupported`: cases that cannot be measured, and why.
    """

    spec: Spec
    cases: tuple[CaseSpec, ...]
    unsupported: tuple[tuple[CaseSpec, str], ...]
    round_s: float
    tools: Mapping[str, int]
    requires: Mapping[str, Mapping[str, Sequence[str]]]


def review(source: str) -> Review | Fault:
    """Return what a user should know about a definition before saving it."""
    try:
        spec = parse(source)
        check_loads(spec)
        return review_spec(spec)
    except InvalidRequestError as error:
        return _build_fault(source, error)


def review_spec(spec: Spec) -> Review:
    """Return the review of a valid definition."""
    cases = expand(spec)
    reasons = [find_unsupported_reason(spec, case.parameters) for case in cases]
    possible = [case for case, reason in zip(cases, reasons, strict=True) if not reason]
    shape = build_resolver(spec)
    tools: dict[str, int] = {}
    for case in possible:
        name = get_tool(shape(case.parameters), case.parameters).name
        tools[name] = tools.get(name, 0) + 1
    return Review(
        spec=spec,
        cases=tuple(cases),
        unsupported=tuple(pair for pair in zip(cases, reasons, strict=True) if pair[1]),
        round_s=sum(estimate_trials_s(spec, possible))
        + estimate_prepare_s(spec, possible, commits=1),
        tools=tools,
        requires=list_requirements(spec),
    )


def list_requirements(spec: Spec) -> dict[str, dict[str, list[str]]]:
    """Return the required programs: program → versions → the values of axes that require it."""
    requirements: dict[str, dict[str, list[str]]] = {}
    for program, versions in spec.requires.items():
        requirements.setdefault(program, {})[versions] = []
    for options in spec.options.values():
        for value, option in options.items():
            for program, versions in option.requires.items() if not option.unsupported else ():
                requirements.setdefault(program, {}).setdefault(versions, []).append(value)
    return dict(sorted(requirements.items()))


def _build_fault(source: str, error: InvalidRequestError) -> Fault:
    path = error.field or ""
    line = find_line(source, path)
    mark = getattr(error.__cause__, "problem_mark", None)
    if not path and mark is not None:
        line = mark.line + 1
    return Fault(
        path=path,
        expectation=str(error).removeprefix(f"{path}: "),
        line=line,
        excerpt=_extract_lines(source, line),
        others=tuple(
            Fault(path=path, expectation=text, line=find_line(source, path))
            for path, text in error.faults[1:]
        ),
    )


def _extract_lines(source: str, line: int | None) -> tuple[Line, ...]:
    if line is None:
        return ()
    lines = source.splitlines()
    first = max(1, line - AROUND)
    return tuple(
        Line(number=number, text=lines[number - 1], wrong=number == line)
        for number in range(first, min(len(lines), line + AROUND) + 1)
    )
