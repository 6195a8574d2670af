"""What goes from a host, and what stays."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents.hostagent import lock
from agents.hostagent.old_files import Sizes, measure_size, remove_old_items

KB = 1024
DAY_S = 86_400


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A work directory of six things, 64 KiB each; the older, the earlier in the list."""
    for age, name in enumerate(reversed(ALL)):
        put(tmp_path, name, days=1 + age)
    return tmp_path


ALL = (
    "repositories/p1.git",
    "builds/b1",
    "tools/t1",
    "sources/s1.tar.gz",
    "jobs/j1",
    "bundles/x.bundle",
)


def put(root: Path, name: str, days: float) -> None:
    """64 KiB that were last used `days` ago, in a folder or a file as `name` says."""
    path = root / name
    path.parent.mkdir(exist_ok=True)
    if path.suffix in (".gz", ".bundle"):
        path.write_bytes(bytes(64 * KB))
    else:
        inside = path / ("a1-r1" if path.parent.name == "jobs" else "tree")
        inside.mkdir(parents=True)
        (inside / "content").write_bytes(bytes(64 * KB))
    if path.parent.name in ("builds", "installs"):
        (path / ".done").touch()
    if path.parent.name == "jobs":
        (path / "a1-r1/keepalive").touch()
    for one in (path, *path.rglob("*")):
        used(one, days)


def used(path: Path, days: float) -> None:
    then = time.time() - days * DAY_S
    os.utime(path, (then, then))


def left(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.glob("*/*")}


@contextmanager
def held(path: Path) -> Iterator[None]:
    fd = lock.take(path)
    assert fd is not None
    yield
    os.close(fd)


def test_prune_removes_what_was_not_used_for_days(root: Path) -> None:
    removed, size_left = remove_old_items(root, keep_days=3.5)
    assert set(removed) == set(ALL[:3])
    assert left(root) == set(ALL[3:])
    assert size_left == measure_without_record(root)


def test_prune_removes_the_data_of_prepare_steps(root: Path) -> None:
    put(root, "data/old", days=40)
    put(root, "data/new", days=1)
    removed, _ = remove_old_items(root, keep_days=30)
    assert removed == ["data/old"]
    assert "data/new" in left(root)


def test_prune_removes_the_longest_unused_until_the_limit_holds(root: Path) -> None:
    limit = measure_size(root) - 100 * KB
    removed, size_left = remove_old_items(root, keep_days=100, limit_bytes=limit)
    assert removed == ["builds/b1", "tools/t1"]
    assert size_left == measure_without_record(root) <= limit


def test_prune_removes_repositories_last(root: Path) -> None:
    removed, _ = remove_old_items(root, keep_days=100, limit_bytes=70 * KB + _folders(root))
    assert removed == [*ALL[1:]]
    removed, size_left = remove_old_items(root, keep_days=100, limit_bytes=0)
    assert removed == ["repositories/p1.git"]
    assert left(root) == set()
    assert size_left == measure_without_record(root)


def measure_without_record(root: Path) -> int:
    return measure_size(root) - measure_size(root / "sizes.json")


def _folders(root: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in (root, *root.rglob("*")) if path.is_dir())


def test_prune_uses_the_time_of_the_last_use(root: Path) -> None:
    used(root / "builds/b1/.done", days=0)
    used(root / "jobs/j1/a1-r1/keepalive", days=0)
    (root / "sources/s1.tar.gz").read_bytes()
    os.utime(root / "sources/s1.tar.gz", (time.time(), time.time() - 50 * DAY_S))
    removed, _ = remove_old_items(root, keep_days=0.5)
    assert left(root) == {"builds/b1", "jobs/j1", "sources/s1.tar.gz"}
    assert len(removed) == 3


def test_prune_counts_a_run_of_a_tool_as_use(root: Path) -> None:
    (root / "tools/t1/oha").touch()
    old = time.time() - 50 * DAY_S
    os.utime(root / "tools/t1/oha", (time.time(), old))
    used(root / "tools/t1", days=50)
    remove_old_items(root, keep_days=0.5)
    assert left(root) == {"tools/t1"}


def test_prune_keeps_what_a_live_step_may_use(root: Path) -> None:
    put(root, "jobs/j2", days=9)
    (root / "jobs/j2/a1-r1").mkdir(exist_ok=True)
    with held(root / "jobs/j2/a1-r1/supervisor.lock"):
        removed, _ = remove_old_items(root, keep_days=0, limit_bytes=0)
        assert removed == ["jobs/j1"]
    with held(root / "host.lock"):
        removed, _ = remove_old_items(root, keep_days=0, limit_bytes=0)
        assert removed == ["jobs/j2"]
    removed, _ = remove_old_items(root, keep_days=0, limit_bytes=0)
    assert left(root) == set()


def test_prune_keeps_jobs_that_may_still_be_fetched(root: Path) -> None:
    used(root / "jobs/j1/a1-r1/keepalive", days=0.01)
    remove_old_items(root, keep_days=100, limit_bytes=0)
    assert left(root) == {"jobs/j1"}


def test_prune_does_not_follow_links(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "precious").write_text("kept")
    (root / "tools/link").symlink_to(outside)
    remove_old_items(root, keep_days=0)
    assert (outside / "precious").read_text() == "kept"
    assert left(root) == set()


def test_prune_does_nothing_in_a_new_directory(tmp_path: Path) -> None:
    assert remove_old_items(tmp_path, keep_days=0, limit_bytes=0) == (
        [],
        measure_size(tmp_path),
    )


def test_prune_recognises_installs_by_their_marker(tmp_path: Path) -> None:
    for name in ("installs/old", "installs/used"):
        put(tmp_path, name, days=40)
    used(tmp_path / "installs/used/.done", days=1)
    assert remove_old_items(tmp_path, keep_days=30)[0] == ["installs/old"]


def test_sizes_of_builds_are_recorded_and_those_of_jobs_are_not(root: Path) -> None:
    _, before = remove_old_items(root, keep_days=100)
    (root / "builds/b1/tree/more").write_bytes(bytes(64 * KB))
    (root / "jobs/j1/a1-r1/more").write_bytes(bytes(64 * KB))
    _, after = remove_old_items(root, keep_days=100)
    assert after == before + 64 * KB
    sizes = Sizes(root)
    assert sizes.renew(root / "builds/b1") == 64 * KB
    assert sizes.measure_all() == before + 2 * 64 * KB
