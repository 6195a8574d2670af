from pathlib import Path

from agents.hostagent.journal import Journal, read_from


def names(path: Path, offset: int) -> tuple[list[str], int]:
    events, end = read_from(path, offset)
    return [event["event"] for event in events], end


def test_it_gives_each_event_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.append("one", text="ü\n")
    first, offset = names(path, 0)
    journal.append("two")
    second, end = names(path, offset)
    assert (first, second) == (["one"], ["two"])
    assert names(path, end) == ([], end)
    assert end == path.stat().st_size
    journal.close()


def test_it_leaves_a_partial_line_for_later(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"event": "one"}\n{"event": "t')
    assert names(path, 0) == (["one"], 17)
    with open(path, "ab") as file:
        file.write(b'wo"}\n')
    assert names(path, 17) == (["two"], path.stat().st_size)


def test_it_has_nothing_to_tell_where_there_is_no_journal(tmp_path: Path) -> None:
    assert read_from(tmp_path / "none", 5) == ([], 5)


def test_it_goes_on_behind_what_a_killed_writer_left(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"event": "one"}\n{"event": "hal')
    journal = Journal(path)
    journal.append("two")
    journal.close()
    assert names(path, 17)[0] == ["two"]
