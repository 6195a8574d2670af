"""What a host is like before a trial and while a load runs: on this one, and on made-up ones."""

import ast
import inspect
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.hostagent.monitoring import counter_deltas, environment
from agents.hostagent.platform import system
from agents.hostagent.platform.counters import FACTS, Consumer, Counters, CpuTimes, Energy
from agents.hostagent.platform.experimental import macos, windows
from agents.hostagent.platform.linux import counters as linux_counters
from agents.hostagent.platform.linux import facts as linux_facts
from agents.hostagent.platform.linux import linux_system
from agents.hostagent.platform.linux import sockets as linux_sockets

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's /proc")
BURN = """
import time
open("/proc/self/comm", "w").write("stranger")
while time.process_time() < 0.4:
    pass
print(1, flush=True)
time.sleep(300)
"""
CPU = "sys/devices/system/cpu"


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def burner() -> Iterator[subprocess.Popen[bytes]]:
    """A stranger who uses 0.4 s of CPU."""
    process = subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def await_burnt(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == b"1\n"


def assert_it_gives_reasons(facts: dict[str, Any], known: tuple[str, ...]) -> None:
    reasons = facts["reasons"]
    assert {key for key, value in facts.items() if value is None} - {"cpus"} == set(reasons)
    assert all(reasons.values())
    assert not set(known) & set(reasons)


@linux_only
def test_environment_is_checked_before_a_trial() -> None:
    facts = environment.EnvironmentMonitor().end()
    known = ("load1", "run_queue", "busy_share", "boot_id")
    assert_it_gives_reasons(facts, known)
    assert 0 <= facts["busy_share"] <= 1
    assert facts["run_queue"] >= 0
    assert facts["cpus"] == os.cpu_count()


@linux_only
def test_environment_before_a_trial_covers_the_time_since_the_trial_before(
    burner: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "MAX_FOREIGN", 100_000)  # tests next to this one may use more
    monkeypatch.setattr(environment, "LONGEST_S", 1e6)
    monitor = environment.EnvironmentMonitor()
    await_burnt(burner)
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    seen = {each["name"]: each["cpu_s"] for each in monitor.end()["foreign"]}
    assert seen["stranger"] >= 0.3
    assert pauses == [0.0]


@linux_only
def test_environment_before_a_trial_does_not_cover_a_long_time(
    burner: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "MAX_FOREIGN", 100_000)
    monkeypatch.setattr(environment, "LONGEST_S", 0.2)
    monitor = environment.EnvironmentMonitor()
    await_burnt(burner)
    began = time.monotonic()
    assert "stranger" not in [each["name"] for each in monitor.end()["foreign"]]
    assert time.monotonic() - began >= environment.ENVIRONMENT_S


@linux_only
@pytest.mark.quiet
def test_environment_before_a_trial_leaves_out_the_work_of_the_agent() -> None:
    monitor = environment.EnvironmentMonitor()
    start_s = time.process_time()
    while time.process_time() - start_s < 0.5:
        pass
    facts = monitor.end()
    assert facts["busy_share"] * facts["cpus"] < 0.3


@linux_only
def test_environment_is_checked_while_a_load_runs(
    burner: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "SHORTEST_S", 0.0)
    monkeypatch.setattr(counter_deltas, "FEWEST_SEGMENTS", 0)
    during = environment.InterferenceMonitor()
    await_burnt(burner)
    # Some segments of TCP, on a host that may be idle.
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
    during.sample()
    facts = during.end(0.0, [])
    known = ("steal_share", "foreign_share", "retransmitted_share", "octets_out", "swapped_pages")
    assert_it_gives_reasons(
        facts, (*known, "clock_step_s", "suspended_s", "boot_id", "ports_exhausted")
    )
    assert facts["foreign_cpu_s"] > 0.2
    assert facts["foreign_share"] == pytest.approx(
        facts["foreign_cpu_s"] / facts["seconds"], abs=0.01
    )
    assert 0 <= facts["steal_share"] <= 1
    assert abs(facts["clock_step_s"]) < 0.001
    assert facts["suspended_s"] == 0.0
    assert not facts["ports_exhausted"]


@linux_only
def test_a_short_load_has_counts_and_no_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "SHORTEST_S", 1e6)
    monkeypatch.setattr(counter_deltas, "FEWEST_SEGMENTS", 1 << 62)
    facts = environment.InterferenceMonitor().end(0.0, [])
    assert facts["foreign_cpu_s"] >= 0
    for key in ("foreign_share", "steal_share"):
        assert facts[key] is None
        assert "less than" in facts["reasons"][key]
    assert "fewer than" in facts["reasons"]["retransmitted_share"]


@linux_only
def test_environment_names_other_processes_and_not_those_of_the_trial(
    burner: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "MAX_FOREIGN", 100_000)  # tests next to this one may use more
    ours, theirs = environment.InterferenceMonitor(), environment.InterferenceMonitor()
    await_burnt(burner)
    seen = {each["name"]: each["cpu_s"] for each in theirs.end(0.0, [])["foreign"]}
    assert seen["stranger"] >= 0.3
    assert "stranger" not in [each["name"] for each in ours.end(0.4, [burner.pid])["foreign"]]


@linux_only
def test_environment_subtracts_the_cpu_time_of_the_trial(burner: subprocess.Popen[bytes]) -> None:
    with_it, without = environment.InterferenceMonitor(), environment.InterferenceMonitor()
    await_burnt(burner)
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    assert without.end(0.0, pids)["foreign_cpu_s"] > 0.2
    assert with_it.end(1e6, pids)["foreign_cpu_s"] == 0


def test_every_environment_fact_has_a_name() -> None:
    before, during = (
        environment.EnvironmentMonitor().end(),
        environment.InterferenceMonitor().end(None, []),
    )
    others = {"cpus", "seconds", "reasons"}
    assert (before.keys() | during.keys()) - others == set(FACTS)


def test_every_environment_fact_is_in_the_protocol() -> None:
    assert environment.__doc__ is not None
    assert [name for name in FACTS if f'"{name}"' not in environment.__doc__] == []


def test_every_system_has_the_same_functions() -> None:
    tree = ast.parse(inspect.getsource(system))
    names = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "_implementation"
    }
    assert "read_counters" in names
    for module in (linux_system, macos, windows):
        assert [name for name in names if not hasattr(module, name)] == []
    for module in (macos, windows):
        assert module.read_counters() == Counters()
        assert set(module.explain_unknown()) == set(FACTS)


def test_a_clock_that_was_set_during_the_load_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not ours to set."""
    offsets = iter((1000.0, 1000.25))
    monkeypatch.setattr(environment, "_measure_clock_offset_s", lambda: next(offsets))
    monkeypatch.setattr(environment, "_CLOCKS_AGREE", True)
    assert environment.InterferenceMonitor().end(None, [])["clock_step_s"] == 0.25


@linux_only
def test_a_machine_that_was_asleep_during_the_load_is_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the boot-time clock continues meanwhile."""
    read, lead_s = time.clock_gettime, [0.0]
    monkeypatch.setattr(time, "clock_gettime", lambda clock: read(clock) + lead_s[0])
    monitor = environment.InterferenceMonitor()
    lead_s[0] = 3600.0
    assert monitor.end(None, [])["suspended_s"] == pytest.approx(3600.0, abs=0.1)


def test_environment_keeps_the_range_of_clock_and_temperature(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Virtual machines have neither sensor."""
    clocks, degrees = iter((3000.0, 2400.0, 2800.0)), iter((60.0, None, 71.5))
    monkeypatch.setattr(system, "read_clock_mhz", lambda _cpus: next(clocks))
    monkeypatch.setattr(system, "read_temperature_c", lambda: next(degrees))
    monkeypatch.setattr(environment, "PERIOD_S", 0.0)
    during = environment.InterferenceMonitor([0])
    assert [during.sample() for _ in range(3)][1] == (None, 2400.0)
    facts = during.end(None, [])
    assert (facts["clock_mhz"], facts["temperature_c"]) == ([2400.0, 3000.0], [60.0, 71.5])
    assert facts["cpus"] == [0]


# Made-up machines: what this one has no files for.

STAT = """\
cpu  500 10 300 9000 90 40 60 70 0 0
cpu0 300 5 200 4000 50 25 50 50 0 0
cpu1 200 5 100 5000 50 25 0 25 0 0
intr 1 2 3
procs_running 4
"""
MACHINE = {
    "proc/stat": STAT,
    "proc/pressure/cpu": "some avg10=1.00 avg60=0.50 avg300=0.10 total=2500000\n",
    "proc/vmstat": "pgpgin 5\npswpin 30\npswpout 12\n",
    "proc/net/snmp": "Ip: X\nIp: 1\nTcp: ActiveOpens OutSegs RetransSegs\nTcp: 7 1000 3\n",
    "proc/net/netstat": (
        "TcpExt: TW ListenOverflows ListenDrops TCPDSACKRecv\nTcpExt: 9 4 5 2\n"
        "IpExt: InOctets OutOctets\nIpExt: 100 200\n"
    ),
    "proc/net/snmp6": "Ip6InReceives 3\nIp6InOctets            \t1000\nIp6OutOctets  2000\n",
    f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "2\n",
    f"{CPU}/cpu0/thermal_throttle/package_throttle_count": "3\n",
    f"{CPU}/cpu1/thermal_throttle/core_throttle_count": "40\n",
    f"{CPU}/cpu1/cpufreq/scaling_cur_freq": "1500000\n",
    f"{CPU}/cpu0/cpufreq/scaling_cur_freq": "3500000\n",
    "sys/class/powercap/intel-rapl:0/name": "package-0\n",
    "sys/class/powercap/intel-rapl:0/energy_uj": "5000000\n",
    "sys/class/powercap/intel-rapl:0/max_energy_range_uj": "262143328850\n",
    "sys/class/powercap/intel-rapl:0:0/name": "core\n",
    "sys/class/powercap/intel-rapl:0:0/energy_uj": "4000000\n",
    "sys/class/powercap/intel-rapl:0:0/max_energy_range_uj": "262143328850\n",
    "sys/class/powercap/intel-rapl:1/name": "psys\n",
    "sys/class/powercap/intel-rapl:1/energy_uj": "9000000\n",
    "sys/class/powercap/intel-rapl:1/max_energy_range_uj": "262143328850\n",
    "sys/class/power_supply/AC/type": "Mains\n",
    "sys/class/power_supply/AC/online": "0\n",
    "sys/class/power_supply/BAT0/type": "Battery\n",
    "sys/class/power_supply/BAT0/status": "Discharging\n",
    "proc/sys/kernel/random/boot_id": "31c1eeab\n",
    "proc/self/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    "proc/self/cgroup": "0::/docker/abc\n",
    "sys/fs/cgroup/docker/cpu.stat": "usage_usec 5\nnr_periods 10\nnr_throttled 6\n",
    "sys/fs/cgroup/docker/abc/cpu.stat": "usage_usec 5\nnr_periods 10\nnr_throttled 1\n",
    "sys/fs/cgroup/cpu.stat": "usage_usec 5\n",
}


def test_environment_reads_the_counters_of_a_machine(tmp_path: Path) -> None:
    read = linux_counters.read_counters(None, put(tmp_path, MACHINE))
    assert read.cpus == {0: CpuTimes(40.5, 0.75, 0.5), 1: CpuTimes(50.5, 0.25, 0.25)}
    assert read.pressure_s == 2.5
    assert (read.segments_sent, read.segments_resent, read.segments_duplicate) == (1000, 3, 2)
    assert (read.listen_overflows, read.listen_drops) == (4, 5)
    assert read.swapped_pages == 42
    assert read.throttle_count == 45
    assert read.quota_periods == 7
    assert (read.octets_out, read.octets_in) == (2200, 1100)
    assert read.energy == {"intel-rapl:0": Energy(5.0, 262143.32885)}


def test_environment_covers_only_the_cpus_of_the_trial(tmp_path: Path) -> None:
    read = linux_counters.read_counters([1], put(tmp_path, MACHINE))
    assert read.cpus is not None
    assert set(read.cpus) == {1}
    assert read.throttle_count == 40
    assert linux_facts.read_clock_mhz([1], tmp_path) == 1500
    assert linux_facts.read_clock_mhz(None, tmp_path) == 3500


def test_environment_reads_quotas_of_cgroups_v1(tmp_path: Path) -> None:
    mounts = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
    files = {
        "proc/self/mounts": mounts,
        "proc/self/cgroup": "3:cpu,cpuacct:/user\n1:name=systemd:/init\n",
        "sys/fs/cgroup/cpu,cpuacct/user/cpu.stat": "nr_periods 9\nnr_throttled 4\n",
    }
    assert linux_counters.read_counters(None, put(tmp_path, files)).quota_periods == 4


def test_the_current_state_of_the_machine_is_read(tmp_path: Path) -> None:
    current_state = linux_counters.read_current_state(put(tmp_path, MACHINE))
    assert current_state == (3, True, "31c1eeab")


def test_a_machine_without_counters_reports_nothing(tmp_path: Path) -> None:
    assert linux_counters.read_counters(None, tmp_path) == Counters()
    assert linux_counters.read_current_state(tmp_path) == (None, None, None)
    assert linux_sockets.count_established_in_tables(80, tmp_path) is None
    assert linux_sockets.are_ports_exhausted(tmp_path) is None
    assert "no energy meter" in linux_counters.explain_unknown(tmp_path)["energy_j"]


def test_environment_reports_that_power_meters_need_root(tmp_path: Path) -> None:
    put(tmp_path, {"sys/class/powercap/intel-rapl:0/name": "package-0\n"})
    assert linux_counters.read_counters(None, tmp_path).energy is None
    assert "root only" in linux_counters.explain_unknown(tmp_path)["energy_j"]


def build_counter_snapshot(seconds: float, **counted: Any) -> counter_deltas.CounterSnapshot:
    return counter_deltas.CounterSnapshot(seconds, 0.0, Counters(**counted))


def test_cpu_time_that_was_not_idle_counts_as_busy() -> None:
    start = build_counter_snapshot(
        10.0, cpus={0: CpuTimes(1.0, 1.0, 1.0), 1: CpuTimes(5.0, 0.0, 0.0)}
    )
    end = build_counter_snapshot(
        20.0, cpus={0: CpuTimes(3.0, 2.0, 1.5), 1: CpuTimes(15.0, 0.0, 0.0)}
    )
    # CPU 0: 10 s less 2 s idle, 1 s of interrupts and 0.5 s stolen; CPU 1: idle.
    assert counter_deltas.compute_busy_s(start, end) == pytest.approx(6.5)
    assert counter_deltas.compute_busy_s(start, end, interrupts=True) == pytest.approx(7.5)
    assert counter_deltas.compute_stolen_share(start.counters, end.counters, 10.0) == 0.025


@pytest.mark.parametrize(
    ("value", "least", "most", "expected"),
    [
        (5.0, 1.0, 9.0, 5.0),
        (0.5, 1.0, 9.0, 1.0),
        (12.0, 1.0, 9.0, 9.0),
        (None, 1.0, 9.0, 1.0),
        (5.0, None, None, 5.0),
        (None, None, None, None),
    ],
)
def test_environment_keeps_an_estimate_within_its_bounds(
    value: float | None, least: float | None, most: float | None, expected: float | None
) -> None:
    assert counter_deltas.clamp(value, least, most) == expected


def test_a_cpu_that_was_added_or_removed_makes_the_share_unknown() -> None:
    start, end = (
        build_counter_snapshot(0.0, cpus={0: CpuTimes(0, 0, 0)}),
        build_counter_snapshot(1.0, cpus={1: CpuTimes(0, 0, 0)}),
    )
    assert counter_deltas.compute_busy_s(start, end) is None
    assert counter_deltas.compute_stolen_share(start.counters, end.counters, 1.0) is None


@pytest.mark.parametrize(
    ("sent", "resent", "duplicate", "share"),
    [
        (1000, 10, 0, 0.01),
        (1000, 10, 8, 0.002),
        # A duplicate of the time before.
        (1000, 0, 1, 0.0),
        # Systems that do not count duplicates.
        (1000, 10, None, 0.01),
        (999, 10, 0, None),
        (1000, None, None, None),
    ],
)
def test_only_lost_segments_count_as_sent_again(
    sent: int, resent: int | None, duplicate: int | None, share: float | None
) -> None:
    counted = {"sent": sent, "resent": resent, "duplicate": duplicate}
    was = Counters(**{f"segments_{name}": 5 for name, n in counted.items() if n is not None})
    now = Counters(**{f"segments_{name}": 5 + n for name, n in counted.items() if n is not None})
    assert counter_deltas.compute_resent_share(was, now) == share


def test_energy_is_counted_across_a_counter_overflow() -> None:
    was = Counters(energy={"a": Energy(90.0, 100.0), "b": Energy(5.0, 100.0)})
    now = Counters(energy={"a": Energy(15.0, 100.0), "b": Energy(7.0, 100.0)})
    assert counter_deltas.compute_joules(was, now) == 27.0
    assert counter_deltas.compute_joules(was, Counters()) is None


def test_environment_reports_which_process_used_which_cpu() -> None:
    before = {
        1: Consumer("init", 0, 5.0, 0),
        2: Consumer("make", 1, 0.5, 0),
        3: Consumer("sh", 2, 1.0, 0),
        9: Consumer("cc", 3, 6.0, 0),
        4: Consumer("server", 1, 1.0, 0),
        8: Consumer("ksoftirqd/0", 0, 1.0, 0),
    }
    after = {
        1: Consumer("init", 0, 5.25, 1),
        2: Consumer("make", 1, 9.5, 0),  # it has waited for both, which used 2 s more of late
        4: Consumer("server", 1, 4.0, 0),
        5: Consumer("cron", 1, 0.5, 2),
        6: Consumer("idle", 1, 0.0, 0),
        8: Consumer("ksoftirqd/0", 0, 9.0, 0),
    }
    processes = counter_deltas.find_foreign_processes(before, after, own_pids=[4])
    assert processes == [
        counter_deltas.ForeignProcess("make", 2.0, frozenset({0})),
        counter_deltas.ForeignProcess("cron", 0.5, frozenset({2})),
        counter_deltas.ForeignProcess("init", 0.25, frozenset({0, 1})),
    ]
    assert counter_deltas.sum_foreign_cpu_s(processes, None) == 2.75
    assert counter_deltas.sum_foreign_cpu_s(processes, [1, 2]) == 0.75
    assert counter_deltas.find_foreign_processes(None, after, []) is None
    assert counter_deltas.sum_foreign_cpu_s(None, [0]) is None


@pytest.fixture
def connected() -> Iterator[tuple[int, list[socket.socket]]]:
    """A server's port and its three clients."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        clients = [socket.create_connection(address) for _ in range(3)]
        accepted = [server.accept()[0] for _ in clients]
        yield address[1], clients
        for each in (*clients, *accepted):
            each.close()


@linux_only
def test_environment_counts_connections_to_the_server(
    connected: tuple[int, list[socket.socket]],
) -> None:
    port, clients = connected
    assert linux_sockets.count_established(port) == 3
    assert linux_sockets.count_established_in_tables(port) == 3
    clients.pop().close()
    assert (
        linux_sockets.count_established(port)
        == linux_sockets.count_established_in_tables(port)
        == 2
    )
    client = clients[0].getsockname()[1]
    assert linux_sockets.count_established(client) == 1
    assert linux_sockets.count_established(1) == linux_sockets.count_established_in_tables(1) == 0


@linux_only
def test_environment_does_not_count_very_many_connections(
    connected: tuple[int, list[socket.socket]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linux_sockets, "MAX_SOCKETS", 2)
    assert linux_sockets.count_established(connected[0]) is None
    assert linux_sockets.count_established_in_tables(connected[0]) is None


@linux_only
def test_environment_reads_proc_tables_where_netlink_is_closed(
    connected: tuple[int, list[socket.socket]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linux_sockets, "_SOCK_DIAG_BY_FAMILY", 4711)
    assert linux_sockets.count_established(connected[0]) == 3


HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"


def network(sockets: list[tuple[int, str, str]], reuse: str, version: str = "") -> dict[str, str]:
    """Ports 32768 to 32771 may be chosen; `sockets`: local port, remote, state."""
    lines = [
        f"{n:4}: 0A000001:{port:04X} {remote} {state} 00000000:00000000 00:00000000"
        for n, (port, remote, state) in enumerate(sockets)
    ]
    return {
        "proc/sys/net/ipv4/ip_local_port_range": "32768\t32771\n",
        "proc/sys/net/ipv4/tcp_tw_reuse": f"{reuse}\n",
        "proc/net/sockstat": f"sockets: used 9\nTCP: inuse {len(sockets)} orphan 0 tw 0 alloc 9\n",
        f"proc/net/tcp{version}": HEAD + "\n".join(lines) + "\n",
    }


AWAY, LOOP, OTHER = "0200000A:1F90", "0100007F:1F90", "0200000A:1F91"


def ports(remote: str, state: str, count: int = 4) -> list[tuple[int, str, str]]:
    return [(32768 + n, remote, state) for n in range(count)]


@pytest.mark.parametrize(
    ("sockets", "reuse", "exhausted"),
    [
        (ports(AWAY, "01"), "2", True),
        (ports(AWAY, "01", 3), "2", False),
        (ports(AWAY, "06"), "2", True),
        (ports(AWAY, "06"), "1", False),
        (ports(LOOP, "06"), "2", False),
        (ports(LOOP, "06"), "0", True),
        (ports(AWAY, "01", 2) + ports(OTHER, "01", 2), "2", False),
        ([(8080, AWAY, "01")] * 9, "2", False),
    ],
)
def test_environment_detects_that_no_port_is_left(
    tmp_path: Path, sockets: list[tuple[int, str, str]], reuse: str, exhausted: bool
) -> None:
    assert linux_sockets.are_ports_exhausted(put(tmp_path, network(sockets, reuse))) is exhausted


def test_environment_counts_ipv4_and_ipv6_in_the_tables(tmp_path: Path) -> None:
    fourth = network([(8080, AWAY, "01"), (8080, AWAY, "06"), (80, AWAY, "01")], "2")
    sixth = network([(8080, AWAY, "01"), (8081, AWAY, "01")], "2", version="6")
    put(tmp_path, {**fourth, **sixth})
    assert linux_sockets.count_established_in_tables(8080, tmp_path) == 2
