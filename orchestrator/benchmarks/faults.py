"""Faults of a definition: our message, and the path into the file. No Django."""

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from orchestrator.benchmarks.fields import Scalar


def find_first_fault(error: ValidationError, data: object) -> tuple[str, str]:
    """Return the path into `data` and the expectation of the fault that explains most."""
    # A misspelt name explains the field that is then missing, so it comes first.
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    path = _format_path(first["loc"], data, missing=first["type"] == "missing")
    text = _describe_expectation(first)
    if first["type"] == "value_error" and not path:
        path, _, text = text.partition(": ")
    return path, text


def _format_path(location: tuple[str | int, ...], data: object, *, missing: bool) -> str:
    """Return `('matrix', 'size', 2)` as `matrix.size[2]`.

    The names that pydantic inserts for members of a union are left out: they are not in the data.
    """
    text = ""
    location = tuple(part for part in location if part != "[key]")
    for place, part in enumerate(location):
        inside = isinstance(data, dict) and part in data
        if isinstance(part, int) and isinstance(data, list):
            text += f"[{part}]"
            data = data[part]
        elif inside or (missing and isinstance(data, dict) and place == len(location) - 1):
            text += f".{part}" if text else str(part)
            data = data[part] if isinstance(data, dict) and inside else None
    return text


def _describe_expectation(error: ErrorDetails) -> str:
    """Return the expectation and the actual value, in our words."""
    if error["type"] == "extra_forbidden":
        return "there is no such field; check its spelling and position"
    if error["type"] == "missing":
        return "this field is missing"
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    got = error.get("input")
    plain = isinstance(got, Scalar) and error["type"] != "value_error"
    return f"{message}, got {got!r}" if plain else message


def describe_yaml_error(error: yaml.YAMLError) -> str:
    """Return the line, the column and the problem of a YAML error."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "it is invalid"
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(problem)
