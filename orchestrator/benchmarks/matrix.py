"""From a definition to its cases: the product of the axes less what is excluded. No Django."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from pydantic import ValidationError

from orchestrator.benchmarks.faults import first_fault
from orchestrator.benchmarks.fields import Scalar
from orchestrator.benchmarks.load import REFERENCES, TEXTS, Load
from orchestrator.benchmarks.spec import Spec
from orchestrator.core.errors import InvalidRequestError
from orchestrator.core.ids import digest_of

MAX_CASES = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSpec:
    """One cell: `key` is the hash of the parameters, 16 hexadecimal digits."""

    key: str
    parameters: Mapping[str, Scalar]
    label: str


def expand(spec: Spec) -> list[CaseSpec]:
    """All cases of a definition in the order of its axes; at least one.

    Raises InvalidRequestError when nothing is left, or when there are more than MAX_CASES.
    """
    size = 1
    for values in spec.matrix.values():
        size *= len(values)
    if size > MAX_CASES:
        raise InvalidRequestError(
            f"the matrix has {size} cells; at most {MAX_CASES} are allowed", field="matrix"
        )
    cells = (
        dict(zip(spec.matrix, values, strict=True)) for values in product(*spec.matrix.values())
    )
    cases = [_case(cell) for cell in cells if not _excluded(cell, spec)]
    if not cases:
        raise InvalidRequestError("every cell of the matrix is excluded", field="exclude")
    return cases


def fill(text: str, parameters: Mapping[str, Scalar]) -> str:
    """`text` with `{axis}` replaced by the case's value; the agent's own words stay."""
    for name, value in parameters.items():
        text = text.replace(f"{{{name}}}", _shown(value))
    return text


def load_of(spec: Spec, parameters: Mapping[str, Scalar]) -> Load:
    """The load of one case: references resolved, checked again with the values in place.

    Raises InvalidRequestError with the axis where a value does not fit.
    """
    data = spec.load.model_dump()
    for name in REFERENCES:
        if isinstance(data.get(name), str) and data[name].startswith("{"):
            data[name] = parameters[data[name].strip("{}")]
    for name in TEXTS:
        if data.get(name) is not None:
            data[name] = fill(data[name], parameters)
    if data.get("command") is not None:
        data["command"] = [fill(word, parameters) for word in data["command"]]
    data["headers"] = {key: fill(value, parameters) for key, value in data["headers"].items()}
    try:
        return Load.model_validate(data)
    except ValidationError as error:
        path, problem = first_fault(error, data)
        raise InvalidRequestError(
            f"matrix: the values {dict(parameters)} do not fit: load.{path}: {problem}",
            field="matrix",
        ) from error


def _case(parameters: dict[str, Scalar]) -> CaseSpec:
    label = ", ".join(f"{name} {_shown(value)}" for name, value in parameters.items())
    return CaseSpec(
        key=digest_of(parameters)[:16], parameters=parameters, label=(label or "default")[:200]
    )


def _excluded(cell: dict[str, Scalar], spec: Spec) -> bool:
    return any(all(cell[name] == value for name, value in out.items()) for out in spec.exclude)


def _shown(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
