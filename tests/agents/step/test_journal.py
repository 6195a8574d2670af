import subprocess
import sys
from pathlib import Path

from agents.hostagent.step.journal import Journal, read_from


def names(path: Path, offset: int) -> tuple[list[str], int]:
    events, end = read_from(path, offset)
    return [event["event"] for event in events], end


def test_each_event_is_read_once(tmp_path: Path) -> None:
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


def test_a_partial_line_is_left_for_the_next_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"event": "one"}\n{"event": "t')
    assert names(path, 0) == (["one"], 17)
    with open(path, "ab") as file:
        file.write(b'wo"}\n')
    assert names(path, 17) == (["two"], path.stat().st_size)


def test_a_missing_journal_has_no_events(tmp_path: Path) -> None:
    assert read_from(tmp_path / "none", 5) == ([], 5)


def test_reading_continues_after_a_line_of_a_killed_writer(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"event": "one"}\n{"event": "hal')
    journal = Journal(path)
    journal.append("two")
    journal.close()
    assert names(path, 17)[0] == ["two"]


def test_a_full_disk_leaves_no_partial_event(tmp_path: Path) -> None:
    """A limit of the file's size cuts a write as a full disk does."""
    path = tmp_path / "journal.jsonl"
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from agents.hostagent.step.journal import Journal\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "journal.append('first')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200, resource.RLIM_INFINITY))\n"
        "try:\n"
        "    journal.append('long', text='x' * 300)\n"
        "except OSError:\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "    journal.append('last')\n"
    )
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", program, str(path)], cwd=root, check=True)
    events, _ = read_from(path, 0)
    assert [event["event"] for event in events] == ["first", "last"]
