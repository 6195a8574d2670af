"""JSON of others: what the database could not keep is gone, what nobody can count with refused."""

import json

import pytest

from orchestrator.core.untrusted_json import parse_json


def test_valid_json_is_unchanged() -> None:
    value = {"a": [1, 2.5, None, True, "ü\n", {"b": "\N{GRINNING FACE}"}], "c": 10**200}
    assert parse_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_characters_that_cannot_be_stored_are_replaced(text: str) -> None:
    data = json.dumps({text: [text]}).encode()
    assert parse_json(data) == {"a\ufffdb": ["a\ufffdb"]}


def test_invalid_utf_8_is_replaced() -> None:
    assert parse_json(b'"a\xed\xa0\x80\xff"') == "a\ufffd\ufffd\ufffd\ufffd"


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"NaN", b"[-Infinity]", b"1e999", b"[1E+400]", b"9" * 400, b"[" * 100_000,
     b'{"a": "\0"}'],
    ids=lambda data: repr(data[:12]),
)  # fmt: skip
def test_invalid_json_and_infinite_numbers_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_json(data)
