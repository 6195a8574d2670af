"""The disk of a round: old files are removed in it, and its builds keep the limit."""

import os
import time

from agents.hostagent.files import FULL_SHARE, count_lacking_bytes, describe_full_disk
from tests.agents.support import AgentHost, a_build, a_plan, write_tar

MIB = 2**20
LONG_AGO = time.time() - 40 * 86_400


def add_old_build(host: AgentHost, name: str, mib: int, used_at: float) -> None:
    folder = host.root / "builds" / name
    (folder / "tree").mkdir(parents=True)
    (folder / "tree/content").write_bytes(bytes(mib * MIB))
    for path in (folder / ".done", folder):
        path.touch()
        os.utime(path, (used_at, used_at))


def a_large_build(number: int, mib: int) -> dict[str, object]:
    code = f"open('content', 'wb').write(bytes({mib} << 20))"
    return a_build(
        id=f"c0ffee-{number}", tree=f"builds/c0ffee-{number}", steps=[["{python}", "-c", code]]
    )


def test_a_round_removes_old_files_and_the_call_before_it_does_not(host: AgentHost) -> None:
    add_old_build(host, "old", 1, LONG_AGO)
    host.verb("prepare")
    assert (host.root / "builds/old").exists()
    step = host.run_round(a_plan())
    assert step.named("round_done")
    assert not (host.root / "builds/old").exists()
    assert (host.root / "builds/c0ffee-r/tree").exists()
    add_old_build(host, "old", 1, LONG_AGO)
    host.run_round(a_plan(step="a1-r2"))
    assert (host.root / "builds/old").exists(), "it looked again after a moment"


def test_a_build_makes_room_and_keeps_what_its_round_needs(host: AgentHost) -> None:
    add_old_build(host, "other", 8, time.time() - 60)
    first = a_large_build(1, 4)
    host.run_round(a_plan(builds=[first]))
    disk = {"limit_bytes": 13 * MIB, "keep_days": 30}
    step = host.run_round(
        a_plan(builds=[first, a_large_build(2, 4), a_large_build(3, 1)], disk=disk, step="a1-r2")
    )
    assert [event["cached"] for event in step.named("build_done")] == [True, False, False]
    assert {path.name for path in (host.root / "builds").iterdir()} == {
        "c0ffee-1", "c0ffee-2", "c0ffee-3",
    }  # fmt: skip


def test_builds_that_exceed_the_limit_end_the_round_with_the_reason(host: AgentHost) -> None:
    # The agent itself has a few MiB.
    disk = {"limit_bytes": 9 * MIB, "keep_days": 30}
    step = host.run_round(a_plan(builds=[a_large_build(n, 4) for n in (1, 2, 3)], disk=disk))
    assert len(step.named("build_done")) == 2
    aborted = step.only("aborted")
    assert aborted["code"] == "disk_limit"
    assert "raise the limit in the host's settings" in aborted["reason"]


def test_a_disk_counts_as_full_before_its_last_byte(tmp_path, monkeypatch) -> None:
    write_tar(tmp_path / "a.tar.gz", {"a": "b"})
    assert count_lacking_bytes(tmp_path) == 0
    monkeypatch.setattr("agents.hostagent.files.FULL_BYTES", 2**60)
    monkeypatch.setattr("agents.hostagent.files.FULL_SHARE", 1.0)
    assert count_lacking_bytes(tmp_path) > 0
    assert "MiB free" in describe_full_disk(tmp_path)
    assert FULL_SHARE < 0.1
