"""Detect the hypervisor of a machine from its firmware names and clock sources."""

from __future__ import annotations

from typing import Optional

#: Substrings of vendor and product in the firmware. Machines of Amazon and Google have these names
#: without a hypervisor, too; then the product differs.
_NAMES = (
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("innotek GmbH", "virtualbox"),
    ("Parallels", "parallels"),
    ("Apple Virtualization", "apple"),
    ("Microsoft Corporation Virtual Machine", "hyper-v"),
    ("Xen", "xen"),
    ("QEMU", "kvm"),
    ("KVM", "kvm"),
    ("Google Compute Engine", "google"),
    ("OpenStack", "kvm"),
    ("BHYVE", "bhyve"),
    ("Firecracker", "firecracker"),
)
_CLOCKS = (("kvm-clock", "kvm"), ("hyperv_clocksource", "hyper-v"), ("xen", "xen"))


def detect_hypervisor(vendor_and_product: str) -> Optional[str]:
    """Return the hypervisor by DMI's vendor and product, separated by a space; None if unknown."""
    if vendor_and_product.startswith("Amazon EC2"):
        return None if vendor_and_product.endswith(".metal") else "amazon"
    return _find_first(_NAMES, vendor_and_product)


def detect_clock_hypervisor(available: str) -> Optional[str]:
    """Return the hypervisor whose clock source is available in a Linux kernel."""
    return _find_first(_CLOCKS, available)


def _find_first(table: tuple[tuple[str, str], ...], text: str) -> Optional[str]:
    return next((kind for name, kind in table if name in text), None)
