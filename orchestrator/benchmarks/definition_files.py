"""Small text files of a definition, which its processes find in the folder `{files}`. No Django."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

MAX_FILES = 16
MAX_FILE_BYTES = 64 * 1024
#: The maximum of all files together.
MAX_FILES_BYTES = 128 * 1024

_PATTERN = r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$"
_PATH = re.compile(_PATTERN[:-1] + r"\Z")
_MAX_PATH = 100


def _check_path(path: str) -> str:
    if len(path) > _MAX_PATH or not _PATH.match(path) or {".", ".."} & set(path.split("/")):
        raise ValueError(
            f"expected a relative path without . and .., of at most {_MAX_PATH} letters, digits, "
            f". _ - and /, got {path[:200]!r}"
        )
    return path


def _check_size(text: str) -> str:
    size = len(text.encode())
    if size > MAX_FILE_BYTES:
        raise ValueError(
            f"a file has at most {MAX_FILE_BYTES // 1024} KiB, this one has {size} bytes; store "
            "larger files in the repository, or create them in a prepare step"
        )
    return text


def check_files(files: dict[str, str]) -> dict[str, str]:
    """Return the files; ValueError if they are too large together, or two paths conflict."""
    total = sum(len(text.encode()) for text in files.values())
    if total > MAX_FILES_BYTES:
        raise ValueError(
            f"the files of a definition have at most {MAX_FILES_BYTES // 1024} KiB together, these "
            f"have {total} bytes"
        )
    for path in files:
        if inside := [other for other in files if other.startswith(f"{path}/")]:
            raise ValueError(f"{path} cannot be a file and the folder of {inside[0]}")
    return files


#: Path → content.
Files = Annotated[
    dict[
        Annotated[
            str,
            AfterValidator(_check_path),
            WithJsonSchema({"type": "string", "pattern": _PATTERN}),
        ],
        Annotated[
            str,
            AfterValidator(_check_size),
            WithJsonSchema({"type": "string", "maxLength": MAX_FILE_BYTES}),
        ],
    ],
    Field(max_length=MAX_FILES),
    AfterValidator(check_files),
]
