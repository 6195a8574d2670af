"""A fetch has limits, shows its progress, and leaves nothing behind where it fails."""

import fcntl
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.benchmarks import git_calls, mirrors, tidying
from orchestrator.benchmarks.git_calls import call_git, extract_git_message
from orchestrator.benchmarks.mirrors import MirrorBusyError, measure_folder
from orchestrator.benchmarks.refs import get_mirror_path
from orchestrator.benchmarks.remote_calls import Remote
from orchestrator.benchmarks.repository import Limits, Repository
from orchestrator.core.errors import InvalidRequestError
from tests.support.factories import Personas, commit_files, git, make_project, make_repository
from tests.support.waiting import wait_until


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    make_repository(tmp_path / "origin", [{"a.txt": "one"}])
    return tmp_path / "origin"


def reader(origin: Path, mirror: Path, limits: Limits | None = None) -> Repository:
    return Repository(Remote(url=str(origin), allow_local=True), mirror, limits=limits)


def odd_commit(origin: Path, parent: str, dated: str, message: str = "odd") -> str:
    """A commit that git's own porcelain would refuse to make, on the branch `odd`."""
    tree = git(origin, "rev-parse", f"{parent}^{{tree}}").strip()
    text = f"tree {tree}\nparent {parent}\nauthor A <a@b> {dated}\ncommitter A <a@b> {dated}\n\n"
    make = ["git", "-C", str(origin), "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    done = subprocess.run(make, input=(text + message).encode(), capture_output=True, check=True)
    sha = done.stdout.decode().strip()
    git(origin, "update-ref", "refs/heads/odd", sha)
    return sha


@pytest.mark.parametrize(
    ("dated", "kept"),
    [
        ("1700000000 +2400", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("1700000000 +9999", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("253402300800 +0000", datetime(9999, 12, 31, tzinfo=UTC)),
        ("9" * 30 + " +0000", datetime(1970, 1, 1, tzinfo=UTC)),
        ("-5 +0000", datetime(1970, 1, 1, tzinfo=UTC)),
        ("", datetime(1970, 1, 1, tzinfo=UTC)),
        ("soon", datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_commit_of_any_date_is_read(
    origin: Path, tmp_path: Path, dated: str, kept: datetime
) -> None:
    parent = git(origin, "rev-parse", "main").strip()
    sha = odd_commit(origin, parent, dated)
    repository = reader(origin, tmp_path / "m.git")
    repository.fetch()
    assert repository.describe(sha).committed_at == kept
    assert [each.sha for each in repository.history("odd", limit=9)] == [parent, sha]


def test_a_commit_subject_may_have_any_line_separator(origin: Path, tmp_path: Path) -> None:
    parent = git(origin, "rev-parse", "main").strip()
    message = "one\x1etwo\u2028three\x85four\x1ffive"
    sha = odd_commit(origin, parent, "1700000000 +0000", message)
    repository = reader(origin, tmp_path / "m.git")
    repository.fetch()
    newest = repository.history("odd", limit=9)[-1]
    assert (newest.sha, newest.subject) == (sha, message)
    assert [each.sha for each in repository.new_since("odd", "main", limit=9)] == [sha]


def test_fetch_reports_progress_and_fetches_refs_without_a_branch(
    origin: Path, tmp_path: Path
) -> None:
    sha = commit_files(origin, {"a.txt": "two"}, 2)
    git(origin, "update-ref", "refs/pull/5/head", sha)
    git(origin, "reset", "--hard", "-q", "main~1")
    beats: list[str] = []
    repository = reader(origin, tmp_path / "m.git")
    repository.fetch("refs/pull/5/head", on_progress=beats.append)
    assert repository.has(sha)
    assert beats
    assert all(line.isprintable() for line in beats)


def test_a_fetch_does_not_wait_long_for_another_one(tmp_path: Path) -> None:
    mirror = tmp_path / "m.git"
    with open(f"{mirror}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with (
            pytest.raises(MirrorBusyError, match="another fetch"),
            mirrors.lock_mirror(mirror, wait_s=0.2),
        ):
            raise AssertionError("it is held")


def test_a_first_fetch_that_fails_leaves_no_mirror(tmp_path: Path) -> None:
    mirror = tmp_path / "m.git"
    with pytest.raises(InvalidRequestError, match="git cannot read the repository"):
        reader(tmp_path / "nowhere", mirror).fetch()
    assert not mirror.exists()


def test_a_mirror_exists_only_after_a_complete_fetch(origin: Path, tmp_path: Path) -> None:
    mirror = tmp_path / "m.git"
    killed = mirrors.build_clone_path(mirror)
    git(origin, "tag", "v1")
    git(tmp_path, "init", "--quiet", "--bare", str(killed))
    repository = reader(origin, mirror)
    assert repository.tagged() is None
    repository.fetch()
    assert repository.tagged() == {git(origin, "rev-parse", "v1").strip()}
    assert not killed.exists()


def test_a_repository_that_is_too_large_is_removed(origin: Path, tmp_path: Path) -> None:
    (origin / "large.bin").write_bytes(os.urandom(3 << 20))
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "large")
    mirror = tmp_path / "m.git"
    limits = Limits(mirror_bytes=1 << 20)
    with pytest.raises(InvalidRequestError, match="PITWALL_GIT_MIRROR_LIMIT_MIB"):
        reader(origin, mirror, limits).fetch()
    assert not mirror.exists()
    reader(origin, mirror).fetch()
    assert measure_folder(mirror) > 3 << 20


def test_an_archive_or_a_bundle_that_is_too_large_is_not_packed(
    origin: Path, tmp_path: Path
) -> None:
    (origin / "large.bin").write_bytes(os.urandom(3 << 20))
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "large")
    repository = reader(origin, tmp_path / "m.git", Limits(packed_bytes=1 << 20))
    repository.fetch()
    sha = repository.resolve("main")
    for pack in (repository.archive, repository.bundle):
        with (
            mirrors.open_pack_file(tmp_path / "data") as file,
            pytest.raises(InvalidRequestError, match=r"1 MiB.*PITWALL_GIT_PACKED_LIMIT_MIB"),
        ):
            pack(sha, file)
    assert list((tmp_path / "data" / "packed").iterdir()) == []


def test_a_full_disk_is_a_clear_error(origin: Path, tmp_path: Path) -> None:
    repository = reader(origin, tmp_path / "m.git")
    repository.fetch()
    with (
        open("/dev/full", "wb", buffering=0) as full,
        pytest.raises(InvalidRequestError, match="No space left on device"),
    ):
        repository.bundle(repository.resolve("main"), full)


def test_files_of_a_killed_fetch_are_removed_and_stop_no_other_fetch(
    origin: Path, tmp_path: Path
) -> None:
    mirror = tmp_path / "m.git"
    repository = reader(origin, mirror)
    repository.fetch()
    left = [
        mirror / "objects/pack/tmp_pack_x1",
        mirror / "objects/tmp_objdir-incoming-x/a",
        mirror / "packed-refs.lock",
        mirror / "refs/heads/main.lock",
    ]
    held = mirror / "refs/pitwall" / ("a" * 40 + ".lock")
    for path in (*left, held):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    commit_files(origin, {"a.txt": "two"}, 2)
    repository.fetch()
    assert [path for path in left if path.exists()] == []
    assert held.exists()
    assert len(repository.history("main", limit=9)) == 2


def test_a_killed_process_ends_its_git(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    code = (
        "from orchestrator.benchmarks.git_calls import run_bounded\n"
        f"run_bounded(['sh', '-c', 'echo $$ >{started}; exec sleep 600'], {{}}, 600)"
    )
    ours = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait_until(lambda: started.exists() and started.read_text().endswith("\n"))
    finally:
        ours.kill()
        ours.wait()
    stat = Path(f"/proc/{int(started.read_text())}/stat")
    wait_until(lambda: not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_setpriv_without_pdeathsig_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "setpriv").write_text("#!/bin/sh\necho 'unrecognized option' >&2\nexit 1\n")
    (tmp_path / "setpriv").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    git_calls._build_prefix.cache_clear()
    try:
        done = git_calls.run_bounded(["echo", "one"], os.environ, 60)
    finally:
        git_calls._build_prefix.cache_clear()
    assert (done.returncode, done.stdout) == (0, b"one\n")


def test_git_has_no_home_and_no_settings_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[user]\nname = Somebody\n")
    for name, value in {
        "HOME": str(tmp_path), "SSH_AUTH_SOCK": "/agent", "GIT_ASKPASS": "/bin/echo",
        "http_proxy": "http://127.0.0.1:9", "PITWALL_SECRET_KEY": "secret",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert call_git("config", "user.name", check=False).stdout == b""
    seen = call_git("-c", "alias.show-variables=!env", "show-variables").stdout.decode()
    names = {line.partition("=")[0] for line in seen.splitlines()}
    assert "GIT_ALLOW_PROTOCOL" in names
    assert not names & {"SSH_AUTH_SOCK", "GIT_ASKPASS", "http_proxy", "PITWALL_SECRET_KEY"}
    assert str(tmp_path) not in seen.replace(os.environ["PATH"], "")


def test_messages_of_git_are_one_line_without_progress() -> None:
    stderr = b"Receiving: 1%\rReceived.\nfatal: \x1b[31mno\x00 way\r\n"
    assert extract_git_message(stderr) == "Received. fatal:  [31mno  way"


@pytest.mark.django_db
def test_mirrors_without_a_project_are_removed(
    personas: Personas, tmp_path: Path, data_dir: Path
) -> None:
    project, _ = make_project(personas.alice, tmp_path / "origin", [{"a.txt": "one"}])
    folder = tmp_path / "data" / "repositories"
    ours = get_mirror_path(project).name
    older = f"{project.pk}.git"
    kept = {ours, older, "9000002.git", "9000003.git", "9000003.git.lock", "notes.txt"}
    before = f"{project.pk}-{'0' * 16}.git"
    for name in (before, older, "9000001.git", "9000002.git", "9000003.git"):
        (folder / name / "objects").mkdir(parents=True)
    for name in ("9000001.git.lock", "9000003.git.lock", "notes.txt"):
        (folder / name).touch()
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    os.utime(folder / before)  # Of an address that was changed: no fetch will come.
    os.utime(folder / "9000002.git")  # Somebody may be adding its project.
    with open(folder / "9000003.git.lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tidying.remove_unused_mirrors()
    left = {path.name for path in folder.iterdir()} - {f"{ours}.lock", f"{older}.lock"}
    assert left == kept, "workers of an older version may still read its mirrors"
    os.utime(folder / ours / "HEAD", (1, 1))
    tidying.remove_unused_mirrors()
    assert not (folder / older).exists()
