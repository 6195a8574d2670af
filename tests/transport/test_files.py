import os
import stat
import threading
from pathlib import Path

import pytest

from orchestrator.core.errors import HostError, HostSetupError, InvalidRequestError, NotFoundError
from orchestrator.transport.base import Transport


def test_a_file_is_returned_as_stored(transport: Transport, work: Path) -> None:
    content = bytes(range(256)) * 3
    transport.put(content, "jobs/j-1/plan.json")
    assert transport.get("jobs/j-1/plan.json", limit=len(content)) == content
    assert (work / "jobs/j-1/plan.json").read_bytes() == content


def test_five_megabytes_are_transferred_both_ways(transport: Transport) -> None:
    content = os.urandom(5_000_000)
    transport.put(content, "big")
    assert transport.get("big", limit=5_000_000) == content


def test_an_open_file_is_transferred_in_pieces(transport: Transport, tmp_path: Path) -> None:
    content = os.urandom(3_500_000)
    (tmp_path / "source").write_bytes(content)
    with (tmp_path / "source").open("rb") as file:
        file.seek(10)
        transport.put(file, "sent")
    assert transport.get("sent", limit=4_000_000) == content[10:]


def test_an_empty_file_is_transferred(transport: Transport) -> None:
    transport.put(b"", "empty")
    assert transport.get("empty", limit=0) == b""


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_the_mode_of_a_file_is_set(transport: Transport, work: Path, mode: int) -> None:
    transport.put(b"x", "file", mode=mode)
    assert stat.S_IMODE((work / "file").stat().st_mode) == mode


def test_folders_are_closed_to_other_users(transport: Transport, work: Path) -> None:
    transport.put(b"x", "jobs/j-1/1/plan.json", mode=0o600)
    made = [work / "jobs", work / "jobs/j-1", work / "jobs/j-1/1"]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in made] == [0o700] * 3


def test_a_file_is_replaced_atomically(transport: Transport, work: Path) -> None:
    """A reader sees the old content or the new, never less."""
    contents = [b"a" * 300_000, b"b" * 300_000]
    transport.put(contents[0], "file")
    seen: set[bytes] = set()
    stop = threading.Event()

    def read_repeatedly() -> None:
        while not stop.is_set():
            seen.add((work / "file").read_bytes())

    reader = threading.Thread(target=read_repeatedly)
    reader.start()
    try:
        for turn in range(1, 20):
            transport.put(contents[turn % 2], "file")
    finally:
        stop.set()
        reader.join()
    assert seen
    assert seen <= set(contents)


def test_no_temporary_file_is_left(transport: Transport, work: Path) -> None:
    transport.put(b"one", "folder/file")
    transport.put(b"two", "folder/file")
    assert [path.name for path in (work / "folder").iterdir()] == ["file"]


def test_a_failed_put_leaves_nothing(transport: Transport, work: Path) -> None:
    (work / "file").mkdir()
    with pytest.raises(HostSetupError, match="Could not write file on "):
        transport.put(b"x", "file")
    assert [path.name for path in work.iterdir()] == ["file"]


def test_a_put_below_a_file_is_refused(transport: Transport) -> None:
    transport.put(b"x", "file")
    with pytest.raises(HostSetupError, match="Could not write file/below on "):
        transport.put(b"x", "file/below")


@pytest.mark.parametrize("path", ["nothing", "no-folder/nothing", "file/below"])
def test_a_missing_file_is_reported(transport: Transport, path: str) -> None:
    transport.put(b"x", "file")
    with pytest.raises(NotFoundError, match=f"There is no file {path} on "):
        transport.get(path, limit=10)


def test_a_get_stops_at_the_limit(transport: Transport) -> None:
    transport.put(b"12345", "file")
    with pytest.raises(HostError, match="more than the 4"):
        transport.get("file", limit=4)


def test_a_get_of_a_folder_is_refused(transport: Transport, work: Path) -> None:
    (work / "folder").mkdir()
    with pytest.raises(HostSetupError, match="Could not read folder on "):
        transport.get("folder", limit=1_000_000)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../up",
        "a/../b",
        "a//b",
        "./a",
        "a/",
        "a b",
        "a;b",
        "-rf",
        "ä",
        "a\nb",
        "~",
    ],
)
def test_invalid_paths_are_refused(transport: Transport, path: str) -> None:
    with pytest.raises(InvalidRequestError, match="path"):
        transport.put(b"x", path)
    with pytest.raises(InvalidRequestError, match="path"):
        transport.get(path, limit=10)
