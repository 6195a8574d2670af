"""Text that PostgreSQL can store: without NUL bytes and without halves of surrogate pairs."""

import json
from typing import Annotated, Any

from pydantic import StringConstraints

#: Text of a client without NUL. Pydantic itself refuses halves of surrogate pairs.
StorableText = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
#: The same on one line.
StorableLine = Annotated[str, StringConstraints(pattern=r"^[^\x00\n]*$")]


def check_storable(value: Any) -> None:
    """Raise ValueError if a text in a plain value cannot be stored."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("a text has half of a character (a lone surrogate)") from error
    if "\\u0000" in text:
        raise ValueError("a text has a NUL")
