"""Parse JSON from untrusted sources into values that Pitwall and the database can store.

PostgreSQL accepts no NUL and no lone surrogate. NaN, infinity and numbers with hundreds of digits
would break later calculations. A host that sends one must not stop the process that reads it.
"""

import json
import re
from typing import Any

#: Characters of suspicious numbers and of escapes; other JSON skips the further checks.
_HUGE = re.compile(r"[0-9][eE]\+?[0-9]{3}|[0-9]{300}")
_UNFIT = re.compile(r"\\u0000|\\u[dD][89a-fA-F]")
_SHOWN_AS = "\N{REPLACEMENT CHARACTER}"


def parse_json(data: bytes) -> Any:
    """Return the value of the JSON; characters that cannot be stored become U+FFFD.

    Raise ValueError for invalid JSON, for deep nesting, or for a number that is not finite.
    """
    text = data.decode("utf-8", "replace")
    read = _parse_carefully if _HUGE.search(text) else _parse_quickly
    try:
        value = read(text)
        return _replace_surrogates(value) if _UNFIT.search(text) else value
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _parse_quickly(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse)


def _parse_carefully(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse, parse_float=_parse_float, parse_int=_parse_int)


def _refuse(text: str) -> Any:
    raise ValueError(f"{text[:40]} is not a number")


def _parse_float(text: str) -> float:
    value = float(text)
    return value if abs(value) != float("inf") else _refuse(text)


def _parse_int(text: str) -> int:
    return int(text) if len(text) < 300 else _refuse(text)


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return whole.replace("\0", _SHOWN_AS)
    if isinstance(value, list):
        return [_replace_surrogates(each) for each in value]
    if isinstance(value, dict):
        return {
            _replace_surrogates(name): _replace_surrogates(each) for name, each in value.items()
        }
    return value
