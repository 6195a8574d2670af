"""Select cases by an expression over their parameters and labels. No Django.

Examples: `protocol == "h3" and size in ("full", "huge")`, `rate >= 1000 and not framework ==
"flask"`. Expressions contain names of axes and labels, texts, numbers, booleans, comparisons,
`and`, `or`, `not` and parentheses.
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orchestrator.benchmarks.fields import Scalar
from orchestrator.benchmarks.matrix import CaseSpec, build_labels
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.errors import InvalidRequestError

MAX_LENGTH = 2_000
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda value, values: value in values,
    ast.NotIn: lambda value, values: value not in values,
}
Names = Mapping[str, Scalar]


def choose(spec: Spec, cases: Sequence[CaseSpec], expression: str) -> list[CaseSpec]:
    """Return the cases that the expression selects, in their order; all if it is empty.

    Raise InvalidRequestError with the field `cases` if it is not valid or selects no case.
    """
    if not expression.strip():
        return list(cases)
    holds = compile_condition(expression)
    empty = {
        label: ""
        for options in spec.options.values()
        for option in options.values()
        for label in option.labels
    }
    chosen = [
        case
        for case in cases
        if holds({**empty, **build_labels(spec, case.parameters), **case.parameters})
    ]
    if not chosen:
        raise _build_choice_error("it matches no case")
    return chosen


def compile_condition(expression: str) -> Callable[[Names], bool]:
    """Return a function that evaluates the expression for given names; an empty one is always true.

    Raise InvalidRequestError with the field `cases` if the expression cannot be parsed. The
    returned function raises it for unknown names and for values that cannot be compared.
    """
    if not expression.strip():
        return lambda names: True
    tree = _parse_expression(expression)

    def holds(names: Names) -> bool:
        try:
            return _evaluate_condition(tree, names)
        except (RecursionError, ValueError) as error:
            raise _build_choice_error("it is nested too deeply, or a number is too long") from error

    return holds


def _parse_expression(expression: str) -> ast.expr:
    if len(expression) > MAX_LENGTH:
        raise _build_choice_error(f"an expression has at most {MAX_LENGTH} characters")
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f" at character {error.offset}" if isinstance(error, SyntaxError) else ""
        raise _build_choice_error(
            f'cannot be parsed{where}; an example: protocol == "h3"'
        ) from error


def _evaluate(node: ast.expr, names: Names) -> object:
    """Return the value of a node; InvalidRequestError with its text if it is not in the grammar."""
    match node:
        case ast.Constant(value=str() | int() | float() as value):
            return value
        case ast.Name(id=name):
            return _look_up(name, names)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _evaluate_condition(operand, names)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_evaluate_condition(each, names) for each in values)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_evaluate_condition(each, names) for each in values)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return [_evaluate(each, names) for each in elements]
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _evaluate_comparison(left, ops, others, names)
    raise _build_choice_error(f"{ast.unparse(node)} is not a comparison of an axis with a value")


def _evaluate_condition(node: ast.expr, names: Names) -> bool:
    value = _evaluate(node, names)
    if not isinstance(value, bool):
        raise _build_choice_error(
            f"{ast.unparse(node)} is neither true nor false; compare it with a value"
        )
    return value


def _evaluate_comparison(
    left: ast.expr, ops: Sequence[ast.cmpop], others: Sequence[ast.expr], names: Names
) -> bool:
    values = [_evaluate(each, names) for each in (left, *others)]
    for op, before, after in zip(ops, values, values[1:], strict=False):
        compare = _COMPARISONS.get(type(op))
        if compare is None:
            raise _build_choice_error("write == rather than is")
        try:
            if not compare(before, after):
                return False
        except TypeError as error:
            raise _build_choice_error(
                f"{before!r} and {after!r} cannot be compared like that"
            ) from error
    return True


def _look_up(name: str, names: Names) -> Scalar:
    if name in ("true", "false"):
        return name == "true"
    if name not in names:
        known = ", ".join(sorted(names)) or "none"
        raise _build_choice_error(
            f'there is no axis or label {name} (known: {known}); put texts in "quotes"'
        )
    return names[name]


def _build_choice_error(problem: str) -> InvalidRequestError:
    return InvalidRequestError(f"cases: {problem}", field="cases")
