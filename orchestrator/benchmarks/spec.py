"""The model of a benchmark definition: strict, and without Django.

A definition is YAML. `parse` turns it into a `Spec` or raises InvalidRequestError whose message
names the path into the file and what was expected there, such as
`load.duration_s: expected a number greater than 0, got 'soon'`.
"""

import re
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from orchestrator.core.errors import InvalidRequestError

MAX_SOURCE_BYTES = 256 * 1024
#: Words that the agent fills in; an axis must not take their names.
RESERVED_WORDS = ("python", "port", "tool", "out", "rows", "trial_dir", "tree")
_WORD = re.compile(r"\{([a-z_][a-z0-9_]*)\}")

Scalar = str | int | float | bool
Argument = Annotated[str, Field(max_length=4096)]
Command = Annotated[list[Argument], Field(min_length=1, max_length=200)]
AxisName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
#: A number, or the name of an axis in braces that gives it: `"{connections}"`.
Reference = Annotated[str, Field(pattern=r"^\{[a-z][a-z0-9_]*\}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)


class Ready(_Strict):
    """The answer that shows that the server serves; it is asked for before and after each load."""

    path: Annotated[str, Field(pattern=r"^/")] = "/"
    status: Annotated[int, Field(ge=100, le=599)] = 200
    body: Annotated[str, Field(max_length=65536)] | None = None
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 30


class Subject(_Strict):
    """What is measured: how it is built and started, an argument at a time, never by a shell."""

    build: Annotated[list[Command], Field(max_length=20)] = []
    build_timeout_s: Annotated[float, Field(gt=0, le=7200)] = 900
    start: Command
    env: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], Argument] = {}
    port: Annotated[int, Field(ge=1024, le=65535)] | None = None
    ready: Ready = Ready()


class Load(_Strict):
    """The load that is put on the subject."""

    tool: Literal["oha"] = "oha"
    path: Annotated[str, Field(pattern=r"^/", max_length=4096)] = "/"
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    headers: dict[Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")], str] = {}
    body: Annotated[str, Field(max_length=65536)] | None = None
    connections: Annotated[int, Field(ge=1, le=10_000)] | Reference = 10
    rate: Annotated[float, Field(gt=0, le=1_000_000)] | Reference | None = None
    duration_s: Annotated[float, Field(gt=0, le=3600)] | Reference | None = None
    requests: Annotated[int, Field(ge=1, le=5_000_000)] | Reference | None = None
    warmup_s: Annotated[float, Field(ge=0, le=600)] = 10
    request_timeout_s: Annotated[float, Field(gt=0, le=600)] = 10
    keepalive: bool = True

    @model_validator(mode="after")
    def _one_stop(self) -> "Load":
        if (self.duration_s is None) == (self.requests is None):
            raise ValueError("give either duration_s or requests, and not both")
        return self


class Spec(_Strict):
    """One version of a benchmark definition."""

    version: Literal[1]
    title: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=5000)] = ""
    subject: Subject
    load: Load
    matrix: dict[AxisName, Annotated[list[Scalar], Field(min_length=1, max_length=100)]] = {}
    exclude: Annotated[list[dict[AxisName, Scalar]], Field(max_length=200)] = []
    rounds: Annotated[int, Field(ge=1, le=100)] = 7
    cooldown_s: Annotated[float, Field(ge=0, le=600)] = 1
    pin_cpus: bool = True

    @model_validator(mode="after")
    def _words_are_known(self) -> "Spec":
        for axis in self.matrix:
            if axis in RESERVED_WORDS:
                raise ValueError(f"matrix.{axis}: this name is taken by the agent; rename the axis")
        for where, text in _texts(self):
            unknown = set(_WORD.findall(text)) - set(self.matrix) - set(RESERVED_WORDS)
            if unknown and not where.startswith("load.path"):
                raise ValueError(
                    f"{where}: {{{min(unknown)}}} is neither an axis of the matrix nor one of "
                    + ", ".join(f"{{{word}}}" for word in RESERVED_WORDS)
                )
        for cell in self.exclude:
            if missing := set(cell) - set(self.matrix):
                raise ValueError(f"exclude: {min(missing)} is not an axis of the matrix")
        return self


def parse(source: str) -> Spec:
    """The specification in a YAML text; InvalidRequestError with the path if it is wrong."""
    if len(source.encode()) > MAX_SOURCE_BYTES:
        raise InvalidRequestError(f"a definition has at most {MAX_SOURCE_BYTES // 1024} KiB")
    try:
        data = yaml.safe_load(source)
    except yaml.YAMLError as error:
        raise InvalidRequestError(f"not valid YAML: {_yaml_place(error)}") from error
    except (RecursionError, ValueError) as error:
        raise InvalidRequestError(f"not a usable YAML document: {error}") from error
    if not isinstance(data, dict):
        raise InvalidRequestError("expected a mapping with version, title, subject and load")
    return from_data(data)


def from_data(data: dict[str, object]) -> Spec:
    """The specification in `data` (as stored, or as YAML gave it); raises as `parse` does."""
    try:
        return Spec.model_validate(data)
    except ValidationError as error:
        # A misspelt name explains the field that is then missing, so it comes first.
        first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        path = _path(first["loc"], data)
        text = _expectation(first)
        if first["type"] == "value_error" and not path:
            path, _, text = text.partition(": ")
        raise InvalidRequestError(f"{path}: {text}", field=path) from error


def _path(location: tuple[str | int, ...], data: object) -> str:
    """`('matrix', 'size', 2)` as `matrix.size[2]`.

    The members of a union, which pydantic names in between, are no places in the data.
    """
    text = ""
    for place, part in enumerate(location):
        inside = isinstance(data, dict) and part in data
        if isinstance(part, int) and isinstance(data, list):
            text += f"[{part}]"
            data = data[part]
        elif inside or (isinstance(data, dict) and place == len(location) - 1):
            text += f".{part}" if text else str(part)
            data = data[part] if isinstance(data, dict) and inside else None
    return text


def _expectation(error: ErrorDetails) -> str:
    """What was expected and what came, in our words."""
    if error["type"] == "extra_forbidden":
        return "there is no such field; check its spelling and where it stands"
    if error["type"] == "missing":
        return "this field is missing"
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    got = error.get("input")
    plain = isinstance(got, Scalar) and error["type"] != "value_error"
    return f"{message}, got {got!r}" if plain else message


def _yaml_place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "it cannot be read"
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(problem)


def _texts(spec: Spec) -> list[tuple[str, str]]:
    """Every text of a definition in which words are filled in, with its path."""
    found = [(f"subject.start[{i}]", text) for i, text in enumerate(spec.subject.start)]
    for b, command in enumerate(spec.subject.build):
        found += [(f"subject.build[{b}][{i}]", text) for i, text in enumerate(command)]
    found += [(f"subject.env.{key}", text) for key, text in spec.subject.env.items()]
    found += [
        (f"load.{name}", value)
        for name in ("connections", "rate", "duration_s", "requests")
        if isinstance(value := getattr(spec.load, name), str)
    ]
    return found
