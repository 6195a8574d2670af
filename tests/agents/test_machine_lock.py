"""The lock of the machine, for all users, work directories and installations."""

import os
from pathlib import Path

import pytest

from agents.hostagent.errors import AgentError, Busy
from agents.hostagent.machine_lock import NAME, check_machine_lock, take_machine_lock
from tests.agents.support import AgentHost, Step, a_plan, a_trial
from tests.support.waiting import wait_until


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as /run/lock: all users may create files there."""
    tmp_path.chmod(0o1777)
    return tmp_path


def take(folder: Path) -> int:
    fd = take_machine_lock([folder])
    assert fd is not None
    return fd


def test_one_job_at_a_time_holds_the_machine(folder: Path) -> None:
    first = take(folder)
    with pytest.raises(Busy, match="another job of Pitwall uses this machine"):
        take(folder)
    with pytest.raises(Busy):
        check_machine_lock([folder])
    os.close(first)
    check_machine_lock([folder])
    os.close(take(folder))


def test_all_users_can_open_the_file_of_the_lock(folder: Path) -> None:
    before = os.umask(0o077)
    try:
        os.close(take(folder))
    finally:
        os.umask(before)
    assert (folder / NAME).stat().st_mode & 0o777 == 0o444


def test_a_lock_whose_file_was_removed_counts_for_nobody(folder: Path) -> None:
    first = take(folder)
    (folder / NAME).unlink()
    second = take(folder)
    with pytest.raises(Busy):
        take(folder)
    os.close(first)
    os.close(second)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_file_of_another_kind_is_reported_and_not_followed(folder: Path, kind: str) -> None:
    path, target = folder / NAME, folder / "target"
    if kind == "link":
        path.symlink_to(target)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(AgentError, match="Remove this file as its owner or as root"):
        take(folder)
    assert not target.exists()


def test_a_folder_that_is_not_open_to_all_is_not_used(tmp_path: Path) -> None:
    private, public = tmp_path / "private", tmp_path / "public"
    private.mkdir(mode=0o755)
    public.mkdir()
    public.chmod(0o1777)
    fd = take_machine_lock([tmp_path / "none", private, public])
    assert fd is not None
    os.close(fd)
    assert [path.name for path in tmp_path.rglob(NAME)] == [NAME]
    assert (public / NAME).exists()
    assert take_machine_lock([private]) is None


def test_a_step_holds_the_machine_until_it_ends(host: AgentHost) -> None:
    """The real lock: an engine of another test may hold it before and after this one."""
    trial = a_trial(host.send_tool(), cooldown_s=20.0)
    step = host.send_plan(a_plan(trial, machine_lock=True))
    wait_until(lambda: _start(host, step), "the lock of this machine is not released")
    step.await_event("trial_done")
    with pytest.raises(Busy):
        check_machine_lock()
    other = host.send_plan(a_plan(trial, job="j2", machine_lock=True))
    assert host.verb("start", "j2", other.name)["error"]["code"] == "busy"
    assert host.verb("prepare", "--owner", "x")["stopped"] == ["j1/a1-r1"], "it has no other owner"
    wait_until(
        lambda: "facts" in host.verb("prepare", "--owner", "x", "--machine-lock"),
        "the lock of this machine is not released",
    )


def _start(host: AgentHost, step: Step) -> bool:
    """Start the step; False while another job holds the machine."""
    answer = host.verb("start", step.job, step.name)
    step.pid = answer.get("pid", 0)
    assert step.pid or answer["error"]["code"] == "busy", answer
    return step.pid > 0
