"""Faults of a definition: our message, and the path into the file. No Django."""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from orchestrator.benchmarks.fields import Scalar

#: A name is suggested if it is at least this similar to an unknown one.
_SIMILAR = 0.75
#: Faults that are reported at once.
MOST_FAULTS = 20


def find_faults(
    error: ValidationError, data: object, model: type[BaseModel]
) -> list[tuple[str, str]]:
    """Return the path into `data` and the expectation of each fault, at most MOST_FAULTS.

    `model` rejected `data`; its fields are suggested for a misspelt one. A misspelt name explains
    the field that is then missing, so these faults come first.
    """
    errors = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    unknown = [str(each["loc"][-1]) for each in errors if each["type"] == "extra_forbidden"]
    meant = {_find_similar_field(name, model) for name in unknown}
    faults: dict[str, str] = {}
    for each in errors:
        path, text = _describe_fault(each, data, model)
        # Each member of a union reports the same value again.
        if not (each["type"] == "missing" and each["loc"][-1] in meant):
            faults.setdefault(path, text)
    return list(faults.items())[:MOST_FAULTS]


def find_first_fault(
    error: ValidationError, data: object, model: type[BaseModel]
) -> tuple[str, str]:
    """Return the first of `find_faults`."""
    return find_faults(error, data, model)[0]


def _describe_fault(error: ErrorDetails, data: object, model: type[BaseModel]) -> tuple[str, str]:
    path = _format_path(error["loc"], data, missing=error["type"] == "missing")
    text = _describe_expectation(error, model)
    if error["type"] == "value_error" and not path:
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


def _describe_expectation(error: ErrorDetails, model: type[BaseModel]) -> str:
    """Return the expectation and the actual value, in our words."""
    if _is_secret(error):
        return (
            "a secret can only be the value of an environment variable: write it in the env of "
            "the subject, a service or a script, such as env: {TOKEN: {secret: NAME}}, and let "
            "the program read that variable"
        )
    if error["type"] == "extra_forbidden":
        return _describe_unknown_field(str(error["loc"][-1]), model)
    if error["type"] == "missing":
        return "this field is missing"
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    got = error.get("input")
    if got is None:
        return f"{message}; null is not supported here"
    plain = isinstance(got, Scalar) and error["type"] != "value_error"
    return f"{message}, got {got!r}" if plain else message


def _is_secret(error: ErrorDetails) -> bool:
    """Return whether a reference to a secret is in a place for other values."""
    if error["type"] == "extra_forbidden":
        return error["loc"][-1] == "secret"
    got = error.get("input")
    return error["type"] != "missing" and isinstance(got, Mapping) and set(got) == {"secret"}


def _describe_unknown_field(name: str, model: type[BaseModel]) -> str:
    similar = _find_similar_field(name, model)
    hint = f"did you mean {similar}?" if similar else "check its spelling and position."
    return f"unknown field {name}; {hint}"


def _find_similar_field(name: str, model: type[BaseModel]) -> str | None:
    """Return the field that a misspelt name probably means; None for a field of another place."""
    names = _list_field_names(model)
    close = [] if name in names else get_close_matches(name, names, n=1, cutoff=_SIMILAR)
    return close[0] if close else None


@cache
def _list_field_names(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the names of all fields of a model and of the models inside it."""
    schema = model.model_json_schema()
    parts = (schema, *schema.get("$defs", {}).values())
    return tuple(sorted({name for part in parts for name in part.get("properties", ())}))


def describe_yaml_error(error: yaml.YAMLError) -> str:
    """Return the line, the column and the problem of a YAML error."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "it is invalid"
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(problem)
