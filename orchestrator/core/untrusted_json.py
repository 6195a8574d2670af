"""JSON that came from elsewhere, as a value that we and the database can keep.

PostgreSQL takes no NUL and no half of a surrogate pair, and nobody calculates with NaN, infinity or
a number of hundreds of digits: a host that says one would stop whoever takes that in.
"""

import json
import re
from typing import Any

#: What may hide in a number, or behind an escape; most JSON has none of it, and is spared the rest.
_HUGE = re.compile(r"[0-9][eE]\+?[0-9]{3}|[0-9]{300}")
_UNFIT = re.compile(r"\\u0000|\\u[dD][89a-fA-F]")
_SHOWN_AS = "\N{REPLACEMENT CHARACTER}"


def json_from(data: bytes) -> Any:
    """What the JSON says; characters that nobody can keep become U+FFFD.

    ValueError for what is no JSON, is nested too deeply, or has a number that is none.
    """
    text = data.decode("utf-8", "replace")
    read = _careful if _HUGE.search(text) else _quick
    try:
        value = read(text)
        return _plain(value) if _UNFIT.search(text) else value
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _quick(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse)


def _careful(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse, parse_float=_float, parse_int=_int)


def _refuse(text: str) -> Any:
    raise ValueError(f"{text[:40]} is no number")


def _float(text: str) -> float:
    value = float(text)
    return value if abs(value) != float("inf") else _refuse(text)


def _int(text: str) -> int:
    return int(text) if len(text) < 300 else _refuse(text)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return whole.replace("\0", _SHOWN_AS)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {_plain(name): _plain(each) for name, each in value.items()}
    return value
