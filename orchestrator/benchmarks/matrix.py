"""The cases of a definition, and the definition of one case with its options applied. No Django."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import combinations, product
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from orchestrator.benchmarks.faults import find_first_fault
from orchestrator.benchmarks.fields import Environment, Scalar, format_axis_value
from orchestrator.benchmarks.load import REFERENCES, TEXTS, Load
from orchestrator.benchmarks.network import Network
from orchestrator.benchmarks.options import Option, merge_changes
from orchestrator.benchmarks.spec import Spec, from_data
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.ids import hash_value
from orchestrator.loadtools.emulated_network import EmulatedNetwork

_Part = TypeVar("_Part", bound=BaseModel)

MAX_CASES = 5_000
#: Fields that do not change what one case measures.
_NOT_MEASURED = frozenset(
    {
        "version", "title", "description", "known", "requires", "matrix", "include", "exclude",
        "baseline", "contest", "rounds", "builds", "too_few_cores",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSpec:
    """One cell: `key` is a hash of the parameters, 16 hexadecimal digits."""

    key: str
    parameters: Mapping[str, Scalar]
    label: str


def expand(spec: Spec) -> list[CaseSpec]:
    """Return all cases in the order of the axes, then those of `include`; at least one.

    Raise InvalidRequestError if no case remains, or if there are more than MAX_CASES.
    """
    size = len(spec.include)
    cells = 1
    for values in spec.matrix.values():
        cells *= len(values)
    if size + cells > MAX_CASES:
        raise InvalidRequestError(
            f"the matrix has {size + cells} cells; at most {MAX_CASES} are allowed", field="matrix"
        )
    whole = (
        dict(zip(spec.matrix, values, strict=True)) for values in product(*spec.matrix.values())
    )
    added = ({axis: cell[axis] for axis in spec.matrix} for cell in spec.include)
    remaining = [cell for cell in whole if not _is_excluded(cell, spec)]
    cases = {case.key: case for case in map(build_case, [*remaining, *added])}
    if not cases:
        raise InvalidRequestError("every cell of the matrix is excluded", field="exclude")
    return list(cases.values())


def build_case(parameters: Mapping[str, Scalar]) -> CaseSpec:
    """Return the case with these parameters, which alone identify it."""
    label = ", ".join(f"{name} {format_axis_value(value)}" for name, value in parameters.items())
    return CaseSpec(
        key=hash_value(dict(parameters))[:16],
        parameters=parameters,
        label=(label or "default")[:200],
    )


def is_baseline(spec: Spec, parameters: Mapping[str, Scalar]) -> bool:
    """Return whether this case is the 100 % of reports; False if the definition has no baseline."""
    return bool(spec.baseline) and all(
        parameters.get(axis) == value for axis, value in spec.baseline.items()
    )


def select_pairwise(cases: Sequence[CaseSpec]) -> list[CaseSpec]:
    """Return fewer cases that still contain each pair of values which occurs together, in order.

    Greedy: repeatedly take the first case that adds most pairs. With fewer than two axes it covers
    each value.
    """
    pairs = [_list_pairs(case) for case in cases]
    missing = set().union(*pairs)
    chosen: set[int] = set()
    # The gain of a case only falls: one that is still first when recalculated is the best.
    queue = [(-len(each), place) for place, each in enumerate(pairs)]
    heapify(queue)
    while missing:
        best = queue[0][1]
        again = (-len(pairs[best] & missing), best)
        if heapreplace(queue, again) == again:
            chosen.add(best)
            missing -= pairs[best]
    return [case for place, case in enumerate(cases) if place in chosen] or list(cases)


def _list_pairs(case: CaseSpec) -> set[object]:
    values = [(axis, format_axis_value(value)) for axis, value in case.parameters.items()]
    return set(combinations(values, 2)) if len(values) > 1 else set(values)


def fill(text: str, parameters: Mapping[str, Scalar]) -> str:
    """Replace each `{axis}` in `text` by the value of the case; placeholders of the agent stay."""
    for name, value in parameters.items():
        text = text.replace(f"{{{name}}}", format_axis_value(value))
    return text


def fill_env(env: Environment, parameters: Mapping[str, Scalar]) -> dict[str, Any]:
    """Return variables as a plan has them: with a text, or with the name of a secret."""
    return {
        key: fill(value, parameters) if isinstance(value, str) else value.model_dump()
        for key, value in env.items()
    }


def _resolve_value(name: str, reference: str, parameters: Mapping[str, Scalar]) -> Scalar:
    value = parameters[reference.strip("{}")]
    if isinstance(value, str) and value.startswith("{"):
        raise InvalidRequestError(
            f"matrix: {value!r} as load.{name}: the value of an axis cannot name another axis",
            field="matrix",
        )
    return value


def resolve_load(spec: Spec, parameters: Mapping[str, Scalar]) -> Load:
    """Return the load of one case: references are resolved, and the result is validated again.

    Raise InvalidRequestError with the axis if a value does not fit.
    """
    data = resolve(spec, parameters).load.model_dump()
    for name in REFERENCES:
        if isinstance(data.get(name), str) and data[name].startswith("{"):
            data[name] = _resolve_value(name, data[name], parameters)
    for name in TEXTS:
        if data.get(name) is not None:
            data[name] = fill(data[name], parameters)
    if data.get("command") is not None:
        data["command"] = [fill(word, parameters) for word in data["command"]]
    data["headers"] = {key: fill(value, parameters) for key, value in data["headers"].items()}
    return _validate(Load, data, "load", parameters)


def resolve_network(spec: Spec, parameters: Mapping[str, Scalar]) -> EmulatedNetwork | None:
    """Return the emulated network of one case; None if it has none.

    Raise InvalidRequestError with the axis if a value does not fit.
    """
    network = resolve(spec, parameters).network
    if network is None:
        return None
    data = {name: fill(text, parameters) for name, text in network.texts.items()}
    return _validate(Network, data, "network", parameters).emulate()


def _validate(
    model: type[_Part], data: dict[str, Any], field: str, parameters: Mapping[str, Scalar]
) -> _Part:
    """Return a field of the definition of one case, after its references were resolved."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        path, problem = find_first_fault(error, data, model)
        raise InvalidRequestError(
            f"matrix: the values {dict(parameters)} do not fit: {field}.{path}: {problem}",
            field="matrix",
        ) from error


def _is_excluded(cell: dict[str, Scalar], spec: Spec) -> bool:
    return any(all(_matches_value(cell[name], out[name]) for name in out) for out in spec.exclude)


def _matches_value(value: Scalar, wanted: Scalar | list[Scalar]) -> bool:
    return value in wanted if isinstance(wanted, list) else value == wanted


def select_options(spec: Spec, parameters: Mapping[str, Scalar]) -> dict[str, Option]:
    """Return the changes for each axis whose value in this case has some."""
    options = {
        axis: spec.options[axis].get(format_axis_value(parameters[axis]))
        for axis in spec.matrix
        if axis in spec.options and axis in parameters
    }
    return {axis: option for axis, option in options.items() if option is not None}


def resolve(spec: Spec, parameters: Mapping[str, Scalar]) -> Spec:
    """Return the definition of one case without options; its placeholders are not replaced yet.

    Later axes win over earlier ones. Raise InvalidRequestError for values whose combined definition
    is not valid, with the path of the option if there is one.
    """
    if not spec.options:
        return spec
    chosen = select_options(spec, parameters)
    data = _dump_spec(spec)
    for option in chosen.values():
        data = merge_changes(data, option.changes())
        data["requires"] = {**data.get("requires", {}), **option.requires}
    try:
        return from_data(data)
    except InvalidRequestError as error:
        raise _build_located_error(error, chosen, parameters) from error


def build_resolver(spec: Spec) -> Callable[[Mapping[str, Scalar]], Spec]:
    """Return `resolve` for many cases: cases with the same values of options share the result."""
    known: dict[tuple[str, ...], Spec] = {}

    def shape(parameters: Mapping[str, Scalar]) -> Spec:
        key = tuple(
            format_axis_value(parameters[axis]) for axis in spec.options if axis in parameters
        )
        if key not in known:
            known[key] = resolve(spec, parameters)
        return known[key]

    return shape


def resolve_cells(spec: Spec, cells: Iterable[Mapping[str, Scalar]]) -> list[Spec]:
    """Return the different definitions of these cases; one if nothing depends on the case."""
    if not spec.options:
        return [spec]
    kinds = {
        tuple(format_axis_value(cell[axis]) for axis in spec.options if axis in cell): cell
        for cell in cells
    }
    return [resolve(spec, cell) for cell in kinds.values()]


def select_measured_part(spec: Spec, parameters: Mapping[str, Scalar]) -> dict[str, Any]:
    """Return everything that a value of this case depends on, to compare two versions.

    It leaves out names, other cells of the matrix and the number of rounds.
    """
    data = _dump_spec(resolve(spec, parameters))
    return {key: value for key, value in data.items() if key not in _NOT_MEASURED}


def build_labels(spec: Spec, parameters: Mapping[str, Scalar]) -> dict[str, str]:
    """Return what reports show of a case in addition to its values, such as a framework."""
    return {
        name: text
        for option in select_options(spec, parameters).values()
        for name, text in option.labels.items()
    }


def find_unsupported_reason(spec: Spec, parameters: Mapping[str, Scalar]) -> str:
    """Return the reason in the definition why a case is unsupported; empty if there is none."""
    reasons = [each.unsupported for each in select_options(spec, parameters).values()]
    return "; ".join(reason for reason in reasons if reason)


def _dump_spec(spec: Spec) -> dict[str, Any]:
    data = spec.model_dump(mode="json")
    data.pop("options", None)
    services = data.pop("services", [])
    data["services"] = {
        each["name"]: {key: value for key, value in each.items() if key != "name"}
        for each in services
    }
    return data


def _build_located_error(
    error: InvalidRequestError, chosen: Mapping[str, Option], parameters: Mapping[str, Scalar]
) -> InvalidRequestError:
    """Return the same error with the path of the option that caused the fault."""
    field = error.field or ""
    for axis, option in chosen.items():
        if _changes_field(option.changes(), field):
            where = f"options.{axis}.{format_axis_value(parameters[axis])}.{field}"
            return InvalidRequestError(
                str(error).replace(field, where, 1) if field else str(error), field=where
            )
    cell = ", ".join(f"{axis} {format_axis_value(parameters[axis])}" for axis in chosen)
    return InvalidRequestError(f"for {cell}: {error}", field=error.field)


def _changes_field(changes: Mapping[str, Any], field: str) -> bool:
    """Return whether these changes set this path or a parent of it."""
    inside: Any = changes
    steps = list(_split_field(field))
    for place, step in enumerate(steps):
        if not isinstance(inside, Mapping):
            return place > 0
        if step not in inside:
            return False
        inside = inside[step]
    return bool(steps)


def _split_field(field: str) -> Iterator[str]:
    for part in field.split("."):
        yield part.partition("[")[0]
