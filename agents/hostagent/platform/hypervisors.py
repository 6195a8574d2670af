"""What the names that firmware gives to a machine say about the hypervisor below it."""

from __future__ import annotations

from typing import Optional

#: In what the firmware calls vendor and product. Amazon's and Google's own machines have these
#: names without a hypervisor, too; there the product tells.
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


def hypervisor(vendor_and_product: str) -> Optional[str]:
    """From DMI's vendor and product with a space between; None where they name no hypervisor."""
    if vendor_and_product.startswith("Amazon EC2"):
        return None if vendor_and_product.endswith(".metal") else "amazon"
    return _first(_NAMES, vendor_and_product)


def hypervisor_of_clock(available: str) -> Optional[str]:
    """From the clock sources that a Linux kernel offers: those of its hypervisor are among them."""
    return _first(_CLOCKS, available)


def _first(table: tuple[tuple[str, str], ...], text: str) -> Optional[str]:
    return next((kind for name, kind in table if name in text), None)
