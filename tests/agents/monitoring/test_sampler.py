"""What a load costs the server, as the kernel counts it."""

import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.monitoring.process_trees import ProcessTree
from agents.hostagent.monitoring.sampler import SAMPLE_SHARE, Sampler, ToolMonitor
from agents.hostagent.platform import system
from agents.hostagent.platform.linux.linux_system import MOST_THREADS
from agents.hostagent.platform.processes import Child
from agents.hostagent.platform.usage import Usage, compute_growth, sum_usages
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counters of Linux")

#: Works when a line arrives: computes in a child of its own, writes to the disk, and sleeps often.
WORKER = """
import os, subprocess, sys, time
print("ready", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
busy = "import time\\nwhile time.process_time() < 0.3: pass\\nprint(1, flush=True); time.sleep(300)"
subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE).stdout.readline()
with open("written", "wb") as file:
    file.write(os.urandom(1 << 20))
    os.fsync(file.fileno())
for _ in range(50):
    time.sleep(0.001)
print("done", flush=True)
time.sleep(300)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Child]:
    with open(tmp_path / "out", "wb") as out:
        child = Child(
            [sys.executable, "-c", WORKER],
            cwd=tmp_path,
            env=dict(os.environ),
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
    await_word(tmp_path, "ready")
    yield child
    child.kill()


def await_word(folder: Path, word: str) -> None:
    wait_until(lambda: word in (folder / "out").read_text(), f"the worker is not {word}")


def test_sampler_counts_the_whole_process_tree_of_the_server(server: Child, tmp_path: Path) -> None:
    sampler = Sampler(server)
    (tmp_path / "go").touch()
    await_word(tmp_path, "done")
    wait_until(lambda: sampled(sampler)["server_cpu_s"] >= 0.3, "no sample counts the child")
    usage = sampler.usage(tool_cpu_s=0.25)
    assert 0.3 <= usage["server_cpu_s"] < 10
    assert usage["server_voluntary_switches"] >= 50
    assert usage["server_involuntary_switches"] >= 0
    assert usage["server_peak_rss_bytes"] > 1_000_000
    assert usage["tool_cpu_s"] == 0.25
    reasons = usage["reasons"]
    assert all(
        (value is None) == (key in reasons) for key, value in usage.items() if key != "reasons"
    )
    sample = sampler.samples[-1]
    assert sample["server_cpu_s"] <= usage["server_cpu_s"]
    assert sample["server_switches"] >= 50
    assert sample["tool_cpu_s"] is None


def sampled(sampler: Sampler) -> dict[str, Any]:
    """The next sample, as if a second were over."""
    sampler(None, float(len(sampler.samples)))
    return sampler.samples[-1]


@pytest.mark.skipif(
    not os.access("/proc/self/io", os.R_OK), reason="this kernel does not account for I/O"
)
def test_sampler_counts_storage_traffic(server: Child, tmp_path: Path) -> None:
    sampler = Sampler(server)
    (tmp_path / "go").touch()
    await_word(tmp_path, "done")
    sampler(None, 1.0)
    written = sampler.usage(None)["server_written_bytes"]
    if not _is_storage(tmp_path):
        pytest.skip("the temporary folder is in memory")
    assert written >= 1 << 20
    assert sampler.samples[0]["server_io_bytes"] >= 1 << 20


def _is_storage(folder: Path) -> bool:
    shown = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True)
    return shown.stdout.strip() not in ("tmpfs", "ramfs", "overlayfs")


def test_sampler_samples_once_a_second_of_the_load(server: Child) -> None:
    sampler = Sampler(server)
    for seconds in (0.0, 0.2, 0.9, 1.05, 1.9, 2.0):
        sampler(server, seconds)
    assert [sample["t"] for sample in sampler.samples] == [0.0, 1.05, 2.0]
    assert sampler.samples[0]["tool_cpu_s"] > 0


def test_sampler_reports_that_the_server_had_ended(server: Child) -> None:
    sampler = Sampler(server)
    server.kill()
    usage = sampler.usage(None)
    assert usage["server_cpu_s"] is None
    assert usage["reasons"]["server_cpu_s"] == "the server had ended"
    assert "another host" in usage["reasons"]["tool_cpu_s"]


def test_growth_is_unknown_if_a_counter_fell() -> None:
    assert compute_growth(Usage(cpu_s=2.0), Usage(cpu_s=1.5), "cpu_s") is None
    assert compute_growth(Usage(cpu_s=2.0), Usage(cpu_s=2.5), "cpu_s") == 0.5
    assert compute_growth(None, Usage(cpu_s=2.5), "cpu_s") is None


def test_sampler_sums_only_counters_known_for_every_process() -> None:
    summed = sum_usages([Usage(cpu_s=1.0, read_bytes=5), Usage(cpu_s=2.0)])
    assert summed == Usage(cpu_s=3.0)
    assert sum_usages([]) is None


def test_sampler_has_no_values_for_an_ended_process() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert system.read_tree_usage([process.pid]) is None
    assert process.pid not in system.read_process_table()


def test_sampler_counts_services_connections_and_itself(server: Child, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        sampler = Sampler(server, port=address[1], services=[server], sensors=lambda: (61.0, 2e3))
        (tmp_path / "go").touch()
        await_word(tmp_path, "done")
        with socket.create_connection(address), socket.create_connection(address):
            sample = sampled(sampler)
    assert sample["connections"] == 2
    assert (sample["temperature_c"], sample["clock_mhz"]) == (61.0, 2e3)
    usage = sampler.usage(None)
    assert usage["services_cpu_s"] >= 0.3
    assert 0 < usage["sampler_cpu_s"] < 10


def test_sampler_omits_connections_without_a_port_and_services_without_any(server: Child) -> None:
    sampler = Sampler(server)
    assert sampled(sampler)["connections"] is None
    usage = sampler.usage(None)
    assert usage["services_cpu_s"] is None
    assert "no service" in usage["reasons"]["services_cpu_s"]


def run_tool(folder: Path, megabytes: int) -> Child:
    """A tool that takes so much memory at its end only."""
    code = f"import time; time.sleep(0.2); x = bytearray({megabytes} << 20)"
    with open(os.devnull, "wb") as null:
        return Child(
            [sys.executable, "-c", code],
            cwd=folder,
            env=dict(os.environ),
            stdout=null,
            stderr=null,
            adopts=False,
        )


def own_peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def test_sampler_reports_the_peak_memory_of_an_ended_tool(server: Child, tmp_path: Path) -> None:
    sampler = Sampler(server)
    # Below this process' peak its memory cannot be distinguished, and a run of all tests uses much.
    megabytes = (own_peak_bytes() >> 20) + 100
    tool = run_tool(tmp_path, megabytes)
    sampler(tool, 0.0)
    wait_until(lambda: tool.exit_code == 0, "the tool does not end")
    tool.kill()
    assert sampler.usage(tool.cpu_s)["tool_peak_rss_bytes"] > megabytes << 20


def test_sampler_does_not_count_memory_of_the_agent_as_that_of_a_tool(
    server: Child, tmp_path: Path
) -> None:
    """A child counts as large as we are until its program starts."""
    sampler = Sampler(server)
    tool = run_tool(tmp_path, 0)
    wait_until(lambda: (tool.usage() or Usage()).peak_rss_bytes, "the tool does not start")
    sampler(tool, 0.0)
    wait_until(lambda: tool.exit_code == 0, "the tool does not end")
    tool.kill()
    assert sampler.usage(tool.cpu_s)["tool_peak_rss_bytes"] < tool.peak_rss_bytes


def test_sampler_returns_the_cpu_time_of_the_tool_nearest_to_a_time(server: Child) -> None:
    watch = ToolMonitor()
    assert watch.cpu_s_at(1.0) is None
    assert watch.peak_rss_bytes is None
    first = watch(server, 0.0)
    watch.readings.append((2.0, 7.5))
    assert (watch.cpu_s_at(0.9), watch.cpu_s_at(1.1)) == (first, 7.5)


def test_sampler_searches_for_processes_as_often_as_it_can_afford(
    server: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[int] = []
    monkeypatch.setattr(server, "tree", lambda *_: searches.append(1) or {server.pid})
    tree = ProcessTree(server)
    tree.usage()
    monkeypatch.setattr(system, "read_newest_pid", lambda: len(searches))
    tree._next_s = float("inf")
    tree.usage()
    assert len(searches) == 1
    tree._next_s = 0.0
    tree.usage()
    tree._next_s = 0.0
    monkeypatch.setattr(system, "read_newest_pid", lambda: 1)  # nothing was started since
    tree.usage()
    assert len(searches) == 2


def test_sampler_reads_a_process_with_many_threads_as_a_whole(tmp_path: Path) -> None:
    code = f"""
import threading, time
event = threading.Event()
for _ in range({MOST_THREADS + 50}):
    threading.Thread(target=event.wait, daemon=True).start()
while time.process_time() < 0.2: pass
print("ready", flush=True)
time.sleep(300)
"""
    with open(tmp_path / "out", "wb") as out:
        child = Child(
            [sys.executable, "-c", code], cwd=tmp_path, env=dict(os.environ), stdout=out, stderr=out
        )
    try:
        await_word(tmp_path, "ready")
        usage = system.read_tree_usage(child.tree())
        assert usage is not None
        assert usage.cpu_s is not None
        assert 0.15 < usage.cpu_s < 10
        assert usage.voluntary_switches is None
        assert "too many threads" in system.UNKNOWN["voluntary_switches"]
    finally:
        child.kill()


def test_sampler_samples_less_often_if_a_sample_is_expensive(server: Child) -> None:
    def burn() -> tuple[float, float]:
        began = time.process_time()
        while time.process_time() - began < 2.0 * SAMPLE_SHARE:
            pass
        return 50.0, 1000.0

    sampler = Sampler(server, sensors=burn)
    for seconds in (0.0, 1.0, 1.9, 100.0):
        sampler(None, seconds)
    assert [sample["t"] for sample in sampler.samples] == [0.0, 100.0]


#: A server that `{how}` its worker, which computes when it may and then ends.
PREFORK = """
import os, signal, sys, time
def await_file(name):
    while not os.path.exists(name):
        time.sleep(0.01)
if sys.argv[1] == "ignores":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    await_file("go")
    while time.process_time() < 0.5:
        pass
    print(time.process_time(), "done", flush=True)
    await_file("end")
    os._exit(0)
print("ready", flush=True)
if sys.argv[1] == "waits":
    os.wait()
    print("reaped", flush=True)
time.sleep(300)
"""


@pytest.mark.parametrize("how", ["ignores", "waits"])
def test_sampler_keeps_the_cpu_time_of_ended_workers(tmp_path: Path, how: str) -> None:
    with open(tmp_path / "out", "wb") as out:
        child = Child(
            [sys.executable, "-c", PREFORK, how],
            cwd=tmp_path, env=dict(os.environ), stdout=out, stderr=out,
        )  # fmt: skip
    try:
        await_word(tmp_path, "ready")
        sampler = Sampler(child)
        (tmp_path / "go").touch()
        await_word(tmp_path, "done")
        before = sampled(sampler)
        assert before["server_switches"] is not None
        (tmp_path / "end").touch()
        wait_until(lambda: len(child.tree()) == 1, "the worker does not end")
        usage = sampler.usage(None)
        assert before["server_cpu_s"] - 0.1 <= usage["server_cpu_s"]
        assert usage["server_cpu_s"] <= 1.5 * before["server_cpu_s"]
        assert usage["ended_workers"] == 1
        assert usage["server_voluntary_switches"] is None
        assert "a process of the server ended" in usage["reasons"]["server_voluntary_switches"]
    finally:
        child.kill()
