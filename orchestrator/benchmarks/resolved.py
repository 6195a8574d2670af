"""The definition of one case, with the changes of its options applied. No Django."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from orchestrator.benchmarks.fields import Scalar, format_axis_value
from orchestrator.benchmarks.options import Option, merge_changes
from orchestrator.benchmarks.spec import Spec, from_data
from orchestrator.core.errors import InvalidRequestError

_NOT_MEASURED = frozenset(
    {
        "version", "title", "description", "known", "requires", "matrix", "include", "exclude",
        "baseline", "rounds",
    }
)  # fmt: skip


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
