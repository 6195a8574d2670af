"""Values of secrets are replaced, however the data is split."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.hostagent.redaction import MASK, RedactedStream, Redactor

KEY = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA1\nend\n"
#: Two letters make repeated, overlapping and partly equal values likely.
VALUES = st.lists(st.text("ab", min_size=8, max_size=12), min_size=1, max_size=3)


def redact_pieces(redactor: Redactor, pieces: list[bytes]) -> bytes:
    stream = RedactedStream(redactor.patterns)
    return b"".join([*map(stream.feed, pieces), stream.end()])


@given(values=VALUES, data=st.data())
def test_a_stream_is_redacted_alike_for_all_splits(values: list[str], data: st.DataObject) -> None:
    words = st.one_of(st.text("abc", max_size=9), st.sampled_from(values))
    text = "".join(data.draw(st.lists(words, max_size=8)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    edges = zip([0, *cuts], [*cuts, len(text)], strict=True)
    redactor = Redactor(values)
    whole = redactor.redact_text(text)
    pieces = [text[start:end].encode() for start, end in edges]
    assert redact_pieces(redactor, pieces).decode() == whole
    assert not any(value in whole for value in values)
    if not any(value in text for value in values):
        assert whole == text


@given(split=st.integers(0, 40))
def test_a_value_split_over_two_reads_is_replaced(split: int) -> None:
    text = b"before the value s3cret-token-1, and after"
    pieces = [text[:split], text[split:]]
    redacted = redact_pieces(Redactor(["s3cret-token-1"]), pieces)
    assert redacted == b"before the value ***, and after"


def test_only_the_possible_begin_of_a_value_is_held() -> None:
    stream = RedactedStream(Redactor(["s3cret-token"]).patterns)
    assert stream.feed(b"a line\n") == b"a line\n"
    assert stream.feed(b"key=s3cr") == b"key="
    assert stream.feed(b"ets") == b"s3crets"[:-1]
    assert stream.end() == b"s"


def test_overlapping_values_leave_nothing_of_either() -> None:
    redactor = Redactor(["12345678abc", "abcdefgh90"])
    assert redactor.redact_text("<12345678abcdefgh90>") == f"<{MASK}>"


def test_a_value_of_several_lines_is_replaced_as_a_whole_and_by_line() -> None:
    redactor = Redactor([KEY])
    assert redactor.redact_text(f"<{KEY}>") == f"<{MASK}>"
    logged = "".join(f"app | {line}\r\n" for line in KEY.splitlines())
    # The last line is too short to be distinguished from other text.
    assert redactor.redact_text(logged) == f"app | {MASK}\r\napp | {MASK}\r\napp | end\r\n"


@pytest.mark.parametrize("value", ['quo"te\\back', "zwölf Körbe", KEY])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_value_is_replaced_where_json_writes_it(value: str, ascii_only: bool) -> None:
    text = json.dumps({"said": f"it is {value}!"}, ensure_ascii=ascii_only)
    assert json.loads(Redactor([value]).redact_text(text)) == {"said": f"it is {MASK}!"}


def test_json_keeps_its_form_and_numbers() -> None:
    redactor = Redactor(["12345678", "t0ken-of-app"])
    given = {"n": 0.12345678, "id 12345678": ["x t0ken-of-app", None, True], "t": 12345678}
    assert redactor.redact_json(given) == {
        "n": 0.12345678, f"id {MASK}": [f"x {MASK}", None, True], "t": 12345678,
    }  # fmt: skip


def test_an_excerpt_shows_no_part_of_a_value() -> None:
    redactor = Redactor(["0123456789abcdefghij"])
    cut = "body 'key 0123456789ab' instead of 'x'"
    assert redactor.redact_json({"message": cut}) == {
        "message": f"body 'key {MASK}' instead of 'x'"
    }
    # A log is not cut: there only the whole value is replaced.
    assert redactor.redact_json({"output": cut}) == {"output": cut}


def test_files_are_redacted_and_others_stay_untouched(tmp_path: Path) -> None:
    report, text, other = (tmp_path / name for name in ("tool.json", "tool.stderr", "other"))
    report.write_text('{"errors": {"token t0ken-of-app": 2}}')
    text.write_bytes(b"\xff t0ken-of-app \xfe")
    other.write_text("nothing")
    before = other.stat().st_mtime_ns
    for path in (report, text, other, tmp_path / "missing"):
        Redactor(["t0ken-of-app"]).redact_file(path)
    assert json.loads(report.read_bytes()) == {"errors": {f"token {MASK}": 2}}
    assert text.read_bytes() == b"\xff *** \xfe"
    assert (other.read_text(), other.stat().st_mtime_ns) == ("nothing", before)
    assert not (tmp_path / "missing").exists()
