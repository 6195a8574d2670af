"""Facts of a host as text: numbers with units, and the kernel's words in plain ones. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from cli.pitwall.units import format_bytes, format_duration, format_number, format_value

#: Fact → the value that the host reports → the words to show.
_WORDS: Mapping[str, Mapping[str, str]] = {
    "smt": {
        "notsupported": "not supported",
        "notimplemented": "not implemented",
        "forceoff": "off until the next start",
    },
    "virtualisation": {
        "amazon": "Amazon EC2",
        "apple": "Apple Virtualization",
        "firecracker": "Firecracker",
        "google": "Google Compute Engine",
        "hyper-v": "Hyper-V",
        "kvm": "KVM",
        "parallels": "Parallels",
        "virtualbox": "VirtualBox",
        "vmware": "VMware",
        "wsl": "WSL",
        "xen": "Xen",
    },
    "container": {
        "docker": "Docker",
        "kubepods": "Kubernetes",
        "libpod": "Podman",
        "lxc": "LXC",
        "podman": "Podman",
    },
}


def format_fact_value(name: str, value: Any) -> str:
    """Return a fact with its unit, which is the end of its name."""
    if isinstance(value, list):
        return ", ".join(format_fact_value(name, each) for each in value) or "–"
    if isinstance(value, Mapping):
        texts = (f"{key}: {format_fact_value(str(key), each)}" for key, each in value.items())
        return ", ".join(texts) or "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _format_number(name, value)
    return _WORDS.get(name, {}).get(str(value), str(value))


def _format_number(name: str, value: float) -> str:
    if name.endswith("_bytes"):
        return format_bytes(value)
    if name.endswith("_mhz"):
        return format_value(round(value), "MHz")
    if name.endswith("_s"):
        return format_duration(value)
    if name == "time":
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S} UTC"
    if name.endswith("_c") or name.startswith("temperature"):
        return f"{format_number(value, decimals=0)} °C"
    if name.endswith("_percent"):
        return f"{format_number(value, decimals=0)} %"
    return format_number(value, digits=4) if isinstance(value, float) else str(value)
