"""What a host says of itself."""

import json
import os
from pathlib import Path

import pytest

from agents.hostagent.platform import hypervisors
from agents.hostagent.platform.facts import (
    STATIC,
    UNKNOWN_REASONS,
    gather_facts,
    select_static_facts,
)
from agents.hostagent.platform.linux import facts as linux_facts
from agents.hostagent.platform.linux.kernel_settings import read_turbo

CPUINFO = """\
processor\t: 0
model name\t: Intel(R) Core(TM) i5-8365U CPU @ 1.60GHz
microcode\t: 0xf4
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu vme de pse tsc msr

processor\t: 1
model name\t: Intel(R) Core(TM) i5-8365U CPU @ 1.60GHz
microcode\t: 0xf4
physical id\t: 0
core id\t\t: 1
flags\t\t: fpu vme de pse tsc msr

processor\t: 2
model name\t: Intel(R) Core(TM) i5-8365U CPU @ 1.60GHz
microcode\t: 0xf4
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu vme de pse tsc msr
"""
CPU = "sys/devices/system/cpu"
LAPTOP = {
    "proc/cpuinfo": CPUINFO,
    "proc/meminfo": "MemTotal:       16111220 kB\nMemFree: 1 kB\nSwapTotal:       2097148 kB\n",
    "proc/uptime": "3589.47 20194.96\n",
    "proc/sys/kernel/random/boot_id": "31c1eeab-6cb8-44ba-b8e4-0a26f2e1e5a5\n",
    "proc/1/cgroup": "0::/init.scope\n",
    "etc/os-release": 'PRETTY_NAME="Fedora Linux 40"\nNAME="Fedora Linux"\nVERSION_ID=40\n',
    f"{CPU}/cpu0/cpufreq/base_frequency": "1900000\n",
    f"{CPU}/cpu0/cpufreq/cpuinfo_min_freq": "400000\n",
    f"{CPU}/cpu0/cpufreq/cpuinfo_max_freq": "4100000\n",
    f"{CPU}/cpufreq/policy0/scaling_governor": "powersave\n",
    f"{CPU}/cpu0/cpufreq/scaling_cur_freq": "1800000\n",
    f"{CPU}/cpu1/cpufreq/scaling_cur_freq": "2200000\n",
    f"{CPU}/intel_pstate/no_turbo": "0\n",
    f"{CPU}/smt/control": "on\n",
    f"{CPU}/vulnerabilities/l1tf": "Not affected\n",
    f"{CPU}/vulnerabilities/mds": "Mitigation: Clear CPU buffers; SMT vulnerable\n",
    f"{CPU}/vulnerabilities/srbds": "Mitigation: Microcode\n",
    "sys/class/dmi/id/sys_vendor": "LENOVO\n",
    "sys/class/dmi/id/product_name": "20N2CTO1WW\n",
    "sys/class/power_supply/AC/type": "Mains\n",
    "sys/class/power_supply/AC/online": "0\n",
    "sys/class/power_supply/BAT0/type": "Battery\n",
    "sys/class/power_supply/BAT0/status": "Discharging\n",
    "sys/class/power_supply/BAT0/capacity": "83\n",
    "sys/class/power_supply/hidpp_battery_0/type": "Battery\n",
    "sys/class/power_supply/hidpp_battery_0/scope": "Device\n",
    "sys/class/power_supply/hidpp_battery_0/capacity": "20\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/class/hwmon/hwmon3/name": "coretemp\n",
    "sys/class/hwmon/hwmon3/temp1_input": "61000\n",
    "sys/class/hwmon/hwmon3/temp1_label": "Package id 0\n",
    "sys/class/hwmon/hwmon3/temp2_input": "58000\n",
    "sys/class/hwmon/hwmon3/temp2_label": "Core 0\n",
    "sys/class/hwmon/hwmon1/name": "nvme\n",
    "sys/class/hwmon/hwmon1/temp1_input": "71850\n",
    "sys/class/thermal/thermal_zone0/type": "pch_cannonlake\n",
    "sys/class/thermal/thermal_zone0/temp": "49500\n",
}


@pytest.fixture
def laptop(tmp_path: Path) -> Path:
    for name, text in LAPTOP.items():
        put(tmp_path, name, text)
    return tmp_path


def put(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_facts_of_a_laptop_are_read(laptop: Path) -> None:
    assert linux_facts.read_facts(laptop) == {
        "cpu_model": "Intel(R) Core(TM) i5-8365U CPU @ 1.60GHz",
        "cores": 2,
        "microcode": "0xf4",
        "clock_base_mhz": 1900,
        "clock_min_mhz": 400,
        "clock_max_mhz": 4100,
        "memory_bytes": 16111220 * 1024,
        "swap_bytes": 2097148 * 1024,
        "os_name": "Fedora Linux",
        "os_version": "40",
        "scaling_driver": None,
        "governor": "powersave",
        "energy_preference": None,
        "platform_profile": None,
        "turbo": "on",
        "smt": "on",
        "transparent_hugepages": None,
        "numa_balancing": None,
        "aslr": None,
        "swappiness": None,
        "kernel_parameters": None,
        "firmware": None,
        "mitigations": "mds: Mitigation: Clear CPU buffers; SMT vulnerable; "
        "srbds: Mitigation: Microcode",
        "virtualisation": "none",
        "container": "none",
        "power_source": "battery",
        "battery_percent": 83,
        "clock_source": "tsc",
        "uptime_s": 3589.47,
        "boot_id": "31c1eeab-6cb8-44ba-b8e4-0a26f2e1e5a5",
        "temperatures": {
            "coretemp Package id 0": 61.0,
            "coretemp Core 0": 58.0,
            "nvme temp1": 71.85,
            "pch_cannonlake": 49.5,
        },
    }


def test_facts_reader_reads_the_sensors_of_the_cpu_only(laptop: Path) -> None:
    assert linux_facts.read_temperature_c(laptop) == 61.0
    assert linux_facts.read_clock_mhz(system=laptop) == 2200


def test_facts_are_unknown_where_the_system_has_no_files(tmp_path: Path) -> None:
    known = {name: value for name, value in linux_facts.read_facts(tmp_path).items() if value}
    assert known == {"container": "none"}
    assert linux_facts.read_temperature_c(tmp_path) is None
    assert linux_facts.read_clock_mhz(system=tmp_path) is None


def test_disabled_turbo_is_detected(laptop: Path) -> None:
    put(laptop, f"{CPU}/intel_pstate/no_turbo", "1\n")
    assert read_turbo(laptop) == "off"
    (laptop / f"{CPU}/intel_pstate/no_turbo").unlink()
    put(laptop, f"{CPU}/cpufreq/boost", "0\n")
    assert read_turbo(laptop) == "off"
    put(laptop, f"{CPU}/cpufreq/boost", "1\n")
    assert read_turbo(laptop) == "on"


def test_mains_power_is_detected(laptop: Path) -> None:
    put(laptop, "sys/class/power_supply/AC/online", "1\n")
    put(laptop, "sys/class/power_supply/BAT0/status", "Charging\n")
    assert linux_facts.read_power(laptop)["power_source"] == "mains"


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ("QEMU Standard PC (Q35 + ICH9, 2009)", "kvm"),
        ("Amazon EC2 m5.large", "amazon"),
        ("Amazon EC2 m5.metal", None),
        ("innotek GmbH VirtualBox", "virtualbox"),
        ("VMware, Inc. VMware7,1", "vmware"),
        ("Microsoft Corporation Virtual Machine", "hyper-v"),
        ("Microsoft Corporation Surface Laptop 4", None),
        ("LENOVO 20N2CTO1WW", None),
    ],
)
def test_hypervisors_are_recognised_by_the_machine_name(names: str, kind: str | None) -> None:
    assert hypervisors.detect_hypervisor(names) == kind


def test_a_hypervisor_is_recognised_by_its_clock(laptop: Path) -> None:
    guest = CPUINFO.replace("tsc msr", "tsc msr hypervisor")
    assert linux_facts.detect_virtualisation(laptop, guest) == "virtual machine"
    clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource"
    put(laptop, clocks, "kvm-clock tsc acpi_pm\n")
    assert linux_facts.detect_virtualisation(laptop, guest) == "kvm"


def test_containers_are_recognised(laptop: Path) -> None:
    put(laptop, "proc/1/cgroup", "12:cpu:/kubepods/besteffort/pod1\n")
    assert linux_facts.detect_container(laptop) == "kubepods"
    put(laptop, "run/.containerenv", "")
    assert linux_facts.detect_container(laptop) == "podman"


def test_cores_have_no_numbers_where_the_kernel_has_none() -> None:
    assert linux_facts.count_cores("processor\t: 0\nBogoMIPS\t: 48.00\n") is None
    assert (
        linux_facts.parse_cpu_model("processor\t: 0\nModel\t: Raspberry Pi 4\n") == "Raspberry Pi 4"
    )


def test_facts_of_this_machine_are_read(tmp_path: Path) -> None:
    facts = gather_facts(tmp_path)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert facts["threads"] >= 1
    assert facts["disk_free_bytes"] > 0
    assert "open_files" in facts["limits_available"]
    unknown = {name for name, value in facts.items() if value is None}
    assert unknown <= set(facts["reasons"])
    assert all(facts["reasons"].values())
    assert set(UNKNOWN_REASONS) <= set(facts)
    assert set(STATIC) <= set(facts["static"])
    assert facts["static"]["python3_version"]


def test_versions_of_runtimes_are_static_facts() -> None:
    facts = dict.fromkeys(STATIC, None) | {
        "languages": {"node": {"version": "20.1.0"}, "go": None, "cargo": {"version": "1.80.0"}},
        "programs": {"gcc": {"version": "12.2.0"}, "make": {"version": "4.3"}},
        "tools": {"openssl": {"version": "3.0.15"}, "nginx": {"version": None}, "git": None},
    }
    static = select_static_facts(facts)
    assert {name: value for name, value in static.items() if value is not None} == {
        "node_version": "20.1.0",
        "gcc_version": "12.2.0",
        "openssl_version": "3.0.15",
    }


def test_installed_memory_is_a_static_fact_and_reserved_memory_is_not() -> None:
    def round_memory(memory_bytes: int) -> int:
        rounded = select_static_facts({"memory_bytes": memory_bytes})["memory_bytes"]
        assert isinstance(rounded, int)
        return rounded

    installed = 16_497_889_280
    assert round_memory(installed) == round_memory(installed - 40_960)
    assert round_memory(installed) != round_memory(2 * installed)
    assert round_memory(installed) != round_memory(installed + (1 << 30))


@pytest.mark.skipif(not hasattr(os, "ST_NOEXEC"), reason="this system does not show the option")
def test_a_work_directory_that_starts_no_program_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = gather_facts(tmp_path)
    assert facts["work_dir_noexec"] is False
    assert facts["local_ports"] > 1000
    mounted = os.statvfs_result((4096, 4096, 10, 5, 5, 10, 5, 5, os.ST_NOEXEC, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: mounted)
    assert gather_facts(tmp_path)["work_dir_noexec"] is True
