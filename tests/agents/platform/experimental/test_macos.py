"""macOS, by what its programs and calls are documented to give: it has not run on one here."""

import ctypes
import struct

import pytest

from agents.hostagent.platform.experimental import macos
from agents.hostagent.platform.process_table import Process

APPLE_SYSCTL = """\
machdep.cpu.brand_string: Apple M2
hw.physicalcpu: 8
hw.memsize: 17179869184
vm.swapusage: total = 2048.00M  used = 1021.25M  free = 1026.75M  (encrypted)
kern.boottime: { sec = 1700000000, usec = 113259 } Tue Nov 14 22:13:20 2023
kern.bootsessionuuid: 7F1D64BC-4A3C-4F1B-9C0E-6A2D1E9F0B11
kern.hv_vmm_present: 0
"""
INTEL_SYSCTL = """\
machdep.cpu.brand_string: Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz
machdep.cpu.microcode_version: 240
hw.physicalcpu: 6
hw.memsize: 17179869184
hw.cpufrequency: 2600000000
hw.cpufrequency_min: 800000000
hw.cpufrequency_max: 2600000000
kern.hv_vmm_present: 1
"""
M2_LEVELS = """\
hw.physicalcpu: 8
hw.logicalcpu: 8
hw.perflevel0.name: Performance
hw.perflevel0.physicalcpu: 4
hw.perflevel0.logicalcpu: 4
hw.perflevel1.name: Efficiency
hw.perflevel1.physicalcpu: 4
hw.perflevel1.logicalcpu: 4
"""
SW_VERS = "ProductName:\t\tmacOS\nProductVersion:\t\t14.5\nBuildVersion:\t\t23F79\n"
ON_BATTERY = """\
Now drawing from 'Battery Power'
 -InternalBattery-0 (id=19595363)\t85%; discharging; 6:25 remaining present: true
"""
ON_MAINS = "Now drawing from 'AC Power'\n"
SETTINGS = """\
System-wide power settings:
Currently in use:
 standby              1
 lowpowermode         1
 hibernatemode        3
"""
PS = """\
    1     0     1 Ss
  310     1   310 S+
  311   310   310 Z
"""


def read(sysctl: str = "", sw_vers: str = "", batteries: str = "", settings: str = "") -> dict:
    return macos.parse_facts(
        sysctl=sysctl, sw_vers=sw_vers, batteries=batteries, settings=settings, now=1700003600.0
    )


def test_the_cores_of_an_apple_m2_are_reported_and_cannot_be_pinned() -> None:
    topology = macos.parse_topology(M2_LEVELS)
    assert topology is not None
    assert topology.kinds == ("performance", "efficiency")
    assert [core.kind for core in topology.cores] == 4 * ["performance"] + 4 * ["efficiency"]
    assert [core.cpus for core in topology.cores] == [(cpu,) for cpu in range(8)]
    assert topology.no_pinning == "macOS cannot pin processes to CPUs"


def test_the_cores_of_an_intel_mac_have_two_cpus() -> None:
    topology = macos.parse_topology("hw.physicalcpu: 6\nhw.logicalcpu: 12\n")
    assert topology is not None
    assert [core.cpus for core in topology.cores] == [(2 * n, 2 * n + 1) for n in range(6)]


def test_facts_of_apple_silicon_lack_clocks_and_microcode() -> None:
    facts = read(APPLE_SYSCTL, SW_VERS, ON_BATTERY, SETTINGS)
    assert {name: value for name, value in facts.items() if value is not None} == {
        "cpu_model": "Apple M2",
        "cores": 8,
        "memory_bytes": 16 * 2**30,
        "swap_bytes": 2 * 2**30,
        "os_name": "macOS",
        "os_version": "14.5",
        "governor": "low power",
        "virtualisation": "none",
        "power_source": "battery",
        "battery_percent": 85,
        "uptime_s": 3600.0,
        "boot_id": "7F1D64BC-4A3C-4F1B-9C0E-6A2D1E9F0B11",
    }


def test_facts_of_an_intel_mac_are_read() -> None:
    facts = read(INTEL_SYSCTL, batteries=ON_MAINS)
    assert (facts["clock_min_mhz"], facts["clock_max_mhz"]) == (800, 2600)
    assert (facts["clock_base_mhz"], facts["microcode"]) == (2600, "240")
    assert (facts["virtualisation"], facts["power_source"]) == ("virtual machine", "mains")
    assert facts["battery_percent"] is None


def test_facts_are_unknown_where_macos_reports_none() -> None:
    assert set(read().values()) == {None}


def test_the_process_table_is_read() -> None:
    assert macos.parse_table(PS) == {
        1: Process(1, 0, 1, None, False),
        310: Process(310, 1, 310, None, False),
        311: Process(311, 310, 310, None, True),
    }


def test_usage_of_a_process_is_read() -> None:
    # struct rusage_info_v4 of <sys/resource.h>: a uuid and 35 numbers of 64 bits.
    assert ctypes.sizeof(macos.RusageInfo) == 16 + 35 * 8
    numbers = list(range(35))
    numbers[0:2] = [240_000_000, 24_000_000]  # user and system, in ticks
    numbers[10:12] = [12_000_000, 0]  # of children that were waited for
    info = macos.RusageInfo.from_buffer_copy(bytes(16) + struct.pack("<35Q", *numbers))
    usage = macos.convert_usage(info, tick_s=125 / 3 / 1e9)  # the timebase of Apple silicon
    assert usage.cpu_s == pytest.approx(11.5)
    assert (usage.rss_bytes, usage.peak_rss_bytes) == (6, 28)
    assert (usage.read_bytes, usage.written_bytes) == (16, 17)
    assert usage.voluntary_switches is None
    assert set(macos.UNKNOWN) == {"voluntary_switches", "involuntary_switches"}
