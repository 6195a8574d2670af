"""A host settles after builds, for a limited time."""

from pathlib import Path

from agents.hostagent.rounds.settling import (
    DIRTY_BYTES,
    RestState,
    describe_unrest,
    read_rest_state,
)
from tests.agents.support import AgentHost, a_build, a_plan

#: Of a machine with 16 GiB after it has unpacked an archive.
MEMINFO = """\
MemTotal:       16303428 kB
MemFree:         9112044 kB
Dirty:            524288 kB
Writeback:         10240 kB
AnonPages:       1812036 kB
"""
MIB = 2**20


def test_pages_that_are_not_written_and_hot_cpus_are_reported(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(MEMINFO)
    assert read_rest_state(tmp_path).dirty_bytes == 522 * MIB
    assert read_rest_state(tmp_path / "other").dirty_bytes is None
    cool = RestState(0, 45.0)
    assert describe_unrest(cool, RestState(DIRTY_BYTES, 47.0)) == ""
    assert describe_unrest(RestState(None, None), RestState(None, 90.0)) == ""
    unrest = describe_unrest(cool, RestState(522 * MIB, 71.0))
    assert unrest == (
        "522 MiB are not on the disk yet; the CPU is 26 °C warmer than before the builds"
    )
    # Other programs had left as many pages before.
    assert describe_unrest(RestState(600 * MIB, None), RestState(522 * MIB, None)) == ""


def test_a_host_settles_after_a_long_build_only(host: AgentHost) -> None:
    short = a_build(id="c0ffee-1", tree="builds/c0ffee-1")
    assert not host.run_round(a_plan(builds=[short])).named("settled")
    code = f"import os, time; open('x', 'wb').write(bytes({DIRTY_BYTES + MIB})); time.sleep(1)"
    long = a_build(id="c0ffee-2", tree="builds/c0ffee-2", steps=[["{python}", "-c", code]])
    step = host.run_round(a_plan(builds=[short, long], step="a1-r2"))
    settled = step.only("settled")
    built = sum(event["seconds"] for event in step.named("build_done"))
    assert settled["seconds"] < built + 1
    assert "disk" in settled["left"] or not settled["left"]
    assert step.named("round_done")
