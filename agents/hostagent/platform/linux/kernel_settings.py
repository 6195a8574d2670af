"""Settings of the kernel and firmware of a Linux host that change measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

from .sysfs import CPU, read_text

#: The parameters of the kernel command line that change measurements. Others say where to boot
#: from, differ at each boot, or may be secret.
_PARAMETERS = frozenset(
    {
        "acpi_cpufreq", "amd_iommu", "amd_pstate", "audit", "clocksource",
        "cpufreq.default_governor", "cpufreq.off", "cpuidle.governor", "cpuidle.off",
        "default_hugepagesz", "highres", "hugepages", "hugepagesz", "idle", "init_on_alloc",
        "init_on_free", "intel_idle.max_cstate", "intel_iommu", "intel_pstate", "iommu",
        "irqaffinity", "isolcpus", "kthread_cpus", "maxcpus", "mce", "mem", "mitigations",
        "nmi_watchdog", "nohz", "nohz_full", "noibpb", "nokaslr", "nopti", "norandmaps", "nosmp",
        "nosmt", "nosoftlockup", "nospec_store_bypass_disable", "nospectre_v1", "nospectre_v2",
        "nowatchdog", "nr_cpus", "numa", "numa_balancing", "page_poison", "preempt",
        "processor.max_cstate", "pti", "random.trust_cpu", "randomize_kstack_offset",
        "rcu_nocb_poll", "rcu_nocbs", "retbleed", "skew_tick", "slab_nomerge", "slub_debug",
        "spec_store_bypass_disable", "spectre_bhi", "spectre_v2", "spectre_v2_user", "srbds",
        "threadirqs", "transparent_hugepage", "tsc", "tsx", "tsx_async_abort",
        "workqueue.power_efficient",
    }
)  # fmt: skip
_ASLR = {"0": "off", "1": "partial", "2": "on"}


def read_kernel_settings(system: Path) -> dict[str, Optional[str]]:
    """Return the settings by name; None for one that this host does not have."""
    return {
        "scaling_driver": read_of_all_cpus(system, "scaling_driver"),
        "governor": read_of_all_cpus(system, "scaling_governor"),
        "energy_preference": read_of_all_cpus(system, "energy_performance_preference"),
        "platform_profile": read_text(system / "sys/firmware/acpi/platform_profile"),
        "turbo": read_turbo(system),
        "smt": read_text(system / CPU / "smt/control"),
        "transparent_hugepages": _read_choice(
            system / "sys/kernel/mm/transparent_hugepage/enabled"
        ),
        "numa_balancing": read_text(system / "proc/sys/kernel/numa_balancing"),
        "aslr": _ASLR.get(read_text(system / "proc/sys/kernel/randomize_va_space") or ""),
        "swappiness": read_text(system / "proc/sys/vm/swappiness"),
        "kernel_parameters": read_parameters(system),
        "firmware": read_text(system / "sys/class/dmi/id/bios_version"),
    }


def read_of_all_cpus(system: Path, name: str) -> Optional[str]:
    """Return the different values of the active cpufreq policies, such as "performance"."""
    paths = system.glob(f"{CPU}/cpufreq/policy*/{name}")
    return ", ".join(sorted({value for value in map(read_text, paths) if value})) or None


def read_turbo(system: Path) -> Optional[str]:
    """Return "on" or "off"; None without a driver that can switch it."""
    off = read_text(system / CPU / "intel_pstate/no_turbo")
    on = read_text(system / CPU / "cpufreq/boost")
    if off is not None:
        return "off" if off == "1" else "on"
    return {"1": "on", "0": "off", None: None}.get(on)


def read_parameters(system: Path) -> Optional[str]:
    """Return the parameters that change measurements, sorted; "none" if there is none."""
    line = read_text(system / "proc/cmdline")
    if line is None:
        return None
    return " ".join(sorted(filter(_is_kept, line.split()))) or "none"


def _is_kept(parameter: str) -> bool:
    return parameter.partition("=")[0].replace("-", "_") in _PARAMETERS


def _read_choice(path: Path) -> Optional[str]:
    """Return the selected word of a file such as `always [madvise] never`."""
    words = (read_text(path) or "").split()
    return next((word[1:-1] for word in words if word.startswith("[")), None)
