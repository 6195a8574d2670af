"""Field types that the parts of a definition share. No Django."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from orchestrator.core.errors import InvalidRequestError

Scalar = str | int | float | bool
Argument = Annotated[str, Field(max_length=4096)]
Command = Annotated[list[Argument], Field(min_length=1, max_length=200)]
Port = Annotated[int, Field(ge=1024, le=65535)]
HttpStatus = Annotated[int, Field(ge=100, le=599)]
SECRET_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
#: An axis of the matrix, or a service.
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
#: A file of the commit.
TreePath = Annotated[str, Field(pattern=r"^[^/\\\x00-\x1f][^\\\x00-\x1f]*$", max_length=400)]

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)\s*\Z")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


class Strict(BaseModel):
    """Rejects unknown fields, and is immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)


class SecretReference(Strict):
    """In place of a variable's value: a secret of the project (docs/host-secrets.md)."""

    secret: Annotated[str, Field(pattern=SECRET_NAME)]


def _get_kind(value: object) -> str:
    return "reference" if isinstance(value, (Mapping, SecretReference)) else "plain text"


#: Variable → text, or reference to a secret.
Environment = dict[
    Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")],
    Annotated[
        Annotated[Argument, Tag("plain text")] | Annotated[SecretReference, Tag("reference")],
        Discriminator(_get_kind),
    ],
]


def select_texts(env: Environment) -> dict[str, str]:
    """Return the variables with a text, without those with a secret."""
    return {name: value for name, value in env.items() if isinstance(value, str)}


def check_folder(path: str | None) -> str | None:
    """Return the path of a folder of the commit; ValueError if it could lead elsewhere."""
    if path is not None and {"", ".", ".."} & set(path.split("/")):
        raise ValueError(f"expected a folder of the commit without . and .., got {path!r}")
    return path


def parse_size(text: object) -> object:
    """Convert `"512 MiB"` to a number of bytes; pydantic validates all other values."""
    if not isinstance(text, str):
        return text
    # No valid size is longer, and matching a long text is slow.
    match = _SIZE.match(text) if len(text) <= 40 else None
    if match is None:
        raise ValueError(f"expected a size such as 512 MiB or 2 GiB, got {text!r}")
    amount, unit = match.groups()
    base = 1024 if unit.endswith("iB") else 1000
    return round(float(amount) * base ** _POWERS[unit.removesuffix("B").removesuffix("i")])


#: Bytes, or text with a unit.
Size = Annotated[int, BeforeValidator(parse_size)]


def format_axis_value(value: Scalar) -> str:
    """Return a value of an axis as labels and commands show it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def refuse(path: str, problem: str) -> InvalidRequestError:
    """Return the error for the field of a definition at `path`."""
    return InvalidRequestError(f"{path}: {problem}", field=path)
