"""Change real samples at random: bytes, and values of JSON.

The same random numbers give the same input, so that its number is enough to create it again.
"""

import json
import random
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

#: JSON values that often break programs.
LEAVES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 255, 2**31, 2**63, -(2**63), 10**40, 10**400, 0.1, -0.0, 1e-320,
    1e308, float("nan"), float("inf"), float("-inf"), "", " ", "0", "-1", "1e999", "nan", "x",
    "\0", "\ud800", "ü", "\u202e", "a\nb", "../../x", "/etc/passwd", "${x}", "{port}", "{x}", "%s",
    "<script>", "__class__", "9" * 5000, "a" * 300, [], {}, [[]], [None], {"": None}, {"x": 1},
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00",
)  # fmt: skip
#: The same for text and bytes.
TOKENS: tuple[bytes, ...] = (
    b"", b"\0", b"\n", b"\r\n", b'"', b"'", b",", b":", b"{", b"}", b"[", b"]", b"-", b"#", b"&a ",
    b"*a", b"!!python/object:os.system ", b"<<: ", b"null", b"true", b"NaN", b"Infinity", b"1e999",
    b"-1", b"0", b"9" * 5000, b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\u0000", b"\\ud800",
    b"../", b"/etc/passwd", b"[" * 2000, b"{\"a\":" * 1200, b"- " * 300, b"%", b"\t", b" " * 50,
    b"0001-01-01T00:00:00+14:00",
)  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_NUMBERS = (b"-1", b"0", b"1e999", b"99999999999999999999999", b"0.0000001", b"nan", b"", b"1.5.2")
_DEEPEST = 12


def changed_bytes(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return `data` after one to four changes; `others` are samples to take pieces from."""
    for _ in range(chance.randint(1, 4)):
        data = chance.choice(_CHANGES)(chance, data, others)
    return data


def changed_value(chance: random.Random, value: Any) -> Any:
    """Return a JSON value after one to three changes; the original is not modified."""
    for _ in range(chance.randint(1, 3)):
        value = _inside(chance, value, 0)
    return value


def changed_json(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return `changed_bytes`, or, half of the time, the JSON with changed values."""
    value = _parsed(data)
    if value is None or chance.random() < 0.4:
        return changed_bytes(chance, data, others)
    return json.dumps(changed_value(chance, value)).encode()


@lru_cache(maxsize=512)
def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _inside(chance: random.Random, value: Any, depth: int) -> Any:
    """Return a copy with a change somewhere inside."""
    if not isinstance(value, dict | list) or not value or depth > _DEEPEST:
        return _other(chance, value)
    if chance.random() < 0.15:
        return _other(chance, value)
    changed = value.copy()
    name = chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
    if chance.random() < 0.12:
        del changed[name]
    elif chance.random() < 0.1:
        _add(chance, changed, changed[name])
    else:
        changed[name] = _inside(chance, value[name], depth + 1)
    return changed


def _add(chance: random.Random, changed: Any, sample: Any) -> None:
    if isinstance(changed, dict):
        changed[str(chance.choice(LEAVES))[:40]] = sample
    else:
        changed.insert(chance.randint(0, len(changed)), sample)


def _other(chance: random.Random, value: Any) -> Any:
    kind = chance.random()
    if kind < 0.5:
        return chance.choice(LEAVES)
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300:
        return chance.choice((str(value), [value], {"a": value}, _shortened(chance, value)))
    return chance.choice((-value, value + 1, value * 1000, str(value), [value], value / 7))


def _shortened(chance: random.Random, value: Any) -> Any:
    return value[: chance.randint(0, len(value))] if isinstance(value, str | list) else value


def _slice(chance: random.Random, data: bytes) -> tuple[int, int]:
    start = chance.randint(0, len(data))
    return start, min(len(data), start + chance.choice((1, 2, 4, 16, 64, 1024)))


def _flip(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes((data[at] ^ (1 << chance.randrange(8)),)) + data[at + 1 :]


def _cut(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _slice(chance, data)
    return data[:start] + data[end:]


def _end(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return data[: chance.randint(0, len(data))]


def _again(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _slice(chance, data)
    return data[:end] + data[start:end] * chance.choice((1, 1, 2, 20)) + data[end:]


def _token(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _slice(chance, data)
    return data[:start] + chance.choice(TOKENS) + data[chance.choice((start, end)) :]


def _splice(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = chance.choice(others)
    start, end = _slice(chance, other)
    at = chance.randint(0, len(data))
    return data[:at] + other[start:end] + data[at:]


def _number(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    match = _NUMBER.search(data, chance.randint(0, len(data)))
    if match is None:
        return data
    return data[: match.start()] + chance.choice(_NUMBERS) + data[match.end() :]


def _lines(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[at] = chance.choice((lines[other], b"", lines[at] * 2, b"  " + lines[at]))
    return b"\n".join(lines)


_CHANGES: tuple[Callable[[random.Random, bytes, Sequence[bytes]], bytes], ...] = (
    _flip, _cut, _end, _again, _token, _token, _splice, _number, _number, _lines,
)  # fmt: skip
