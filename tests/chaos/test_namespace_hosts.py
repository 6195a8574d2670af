"""The hosts that these tests run on are real ones, and nothing is left of them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.core.errors import HostError, UnreachableError
from orchestrator.transport.ssh import SshTransport
from tests.support.bridge import ip
from tests.support.netns import NamespaceHost, run_hosts
from tests.support.programs import program
from tests.support.waiting import wait_until

pytestmark = pytest.mark.chaos

ROOT = Path(__file__).resolve().parents[2]
CLOCK = "import time; print(time.time())"
# By the host's own clock, whichever that is.
NEW_FILE = """
import os, time
open("file", "w").close()
print("new" if abs(time.time() - os.stat("file").st_mtime) < 60 else "old")
"""
# A run of tests that is killed in the middle of it.
ANOTHER_RUN = """
import pathlib, sys, time
from tests.support.netns import run_hosts
with run_hosts(pathlib.Path(sys.argv[1]), count=1, disk_bytes=1_000_000) as hosts:
    print(hosts[0].network.number, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[list[NamespaceHost]]:
    with run_hosts(tmp_path, count=2) as running:
        yield running


def run_on_host(host: NamespaceHost, *argv: str) -> str:
    with SshTransport(host.login(), connect_timeout_s=2) as transport:
        return transport.run(argv, timeout_s=20).stdout.decode().strip()


def leave_behind(host: NamespaceHost) -> None:
    run_on_host(host, "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &")
    wait_until(lambda: [line.split()[1:] for line in host.processes()] == [["sleep", "1000"]])


def test_each_host_has_its_own_name_and_processes(hosts: list[NamespaceHost]) -> None:
    assert [run_on_host(host, "hostname") for host in hosts] == ["a", "b"]
    leave_behind(hosts[0])
    assert hosts[1].processes() == []
    assert "sleep 1000" in run_on_host(hosts[0], "ps", "-A", "-o", "args")
    assert "sleep 1000" not in run_on_host(hosts[1], "ps", "-A", "-o", "args")


def test_hosts_can_reach_each_other(hosts: list[NamespaceHost]) -> None:
    other = hosts[1].address
    program = f"import socket; print(socket.create_connection(('{other}', 22), 5).recv(3))"
    assert run_on_host(hosts[0], "python3", "-c", program) == "b'SSH'"


def test_a_link_is_cut_and_restored(hosts: list[NamespaceHost]) -> None:
    hosts[0].cut()
    with pytest.raises(UnreachableError):
        run_on_host(hosts[0], "true")
    assert run_on_host(hosts[1], "hostname") == "b"
    hosts[0].fix()
    wait_until(hosts[0].answers)
    assert run_on_host(hosts[0], "hostname") == "a"


def test_killing_an_sshd_kills_nothing_else(hosts: list[NamespaceHost]) -> None:
    leave_behind(hosts[0])
    hosts[0].kill_sshd()
    with pytest.raises(UnreachableError):
        run_on_host(hosts[0], "true")
    assert len(hosts[0].processes()) == 1
    hosts[0].start_sshd()
    assert run_on_host(hosts[0], "hostname") == "a"


def test_a_reboot_ends_all_processes_of_the_host(hosts: list[NamespaceHost]) -> None:
    leave_behind(hosts[0])
    hosts[0].reboot()
    assert hosts[0].processes() == []
    assert run_on_host(hosts[0], "hostname") == "a"


def test_a_process_is_killed_by_its_pid_on_the_host(hosts: list[NamespaceHost]) -> None:
    leave_behind(hosts[0])
    hosts[0].kill_process(int(run_on_host(hosts[0], "pgrep", "-n", "sleep")))
    wait_until(lambda: hosts[0].processes() == [])


def test_a_disk_is_filled_and_freed(tmp_path: Path) -> None:
    with run_hosts(tmp_path, count=1, disk_bytes=1_000_000) as (host,):
        with SshTransport(host.login()) as transport:
            host.fill_disk()
            with pytest.raises(HostError):
                transport.put(bytes(10_000), "file")
            host.free_disk()
            transport.put(bytes(10_000), "file")
        assert (host.work_dir / "file").stat().st_size == 10_000
    assert not host.work_dir.is_mount()


def test_the_clock_of_a_host_is_shifted(tmp_path: Path) -> None:
    with run_hosts(tmp_path, count=2, clocks=True) as (host, other):
        host.shift_clock(3600)
        ours, theirs = (float(run_on_host(each, "python3", "-c", CLOCK)) for each in (other, host))
        assert theirs - ours > 3000
        assert [run_on_host(each, "python3", "-c", NEW_FILE) for each in (host, other)] == [
            "new",
            "new",
        ]


def test_no_namespace_or_process_is_left(tmp_path: Path) -> None:
    with run_hosts(tmp_path, count=1) as (host,):
        leave_behind(host)
        names = host.network.namespace(""), host.network.bridge
    assert host.processes() == []
    assert all(name not in ip("netns", "list") + ip("link", "show") for name in names)


def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    program("sshd")
    argv = [sys.executable, "-c", ANOTHER_RUN, str(tmp_path / "other")]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        number = int(other.stdout.readline())
        os.kill(other.pid, signal.SIGKILL)
    assert f"pitwall-{number}-a" in ip("netns", "list")
    with run_hosts(tmp_path, count=1) as (host,):
        left = ip("netns", "list").split()
        assert number == host.network.number or f"pitwall-{number}-a" not in left
        assert f"pitwall-{number}-a {tmp_path}/other" not in Path("/proc/self/mounts").read_text()
