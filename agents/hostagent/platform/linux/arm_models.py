"""Names of ARM CPUs: their kernels show only numbers (MIDR_EL1), as lscpu reads them too."""

from __future__ import annotations

import re
from typing import Optional

_IMPLEMENTERS = {
    0x41: "ARM", 0x42: "Broadcom", 0x43: "Cavium", 0x46: "Fujitsu", 0x48: "HiSilicon",
    0x4E: "NVIDIA", 0x50: "APM", 0x51: "Qualcomm", 0x53: "Samsung", 0x61: "Apple",
    0x6D: "Microsoft", 0xC0: "Ampere",
}  # fmt: skip
_PARTS = {
    0x41: {
        0xB76: "ARM1176", 0xC07: "Cortex-A7", 0xC08: "Cortex-A8", 0xC09: "Cortex-A9",
        0xC0F: "Cortex-A15", 0xD03: "Cortex-A53", 0xD04: "Cortex-A35", 0xD05: "Cortex-A55",
        0xD07: "Cortex-A57", 0xD08: "Cortex-A72", 0xD09: "Cortex-A73", 0xD0A: "Cortex-A75",
        0xD0B: "Cortex-A76", 0xD0C: "Neoverse-N1", 0xD0D: "Cortex-A77", 0xD40: "Neoverse-V1",
        0xD41: "Cortex-A78", 0xD44: "Cortex-X1", 0xD46: "Cortex-A510", 0xD47: "Cortex-A710",
        0xD48: "Cortex-X2", 0xD49: "Neoverse-N2", 0xD4A: "Neoverse-E1", 0xD4D: "Cortex-A715",
        0xD4E: "Cortex-X3", 0xD4F: "Neoverse-V2", 0xD80: "Cortex-A520", 0xD81: "Cortex-A720",
        0xD82: "Cortex-X4", 0xD84: "Neoverse-V3", 0xD8E: "Neoverse-N3",
    },
    0x43: {0x0AF: "ThunderX2"},
    0x46: {0x001: "A64FX"},
    0x48: {0xD01: "TaiShan v110"},
    0x51: {0x001: "Oryon"},
    0x61: {0x022: "M1 Icestorm", 0x023: "M1 Firestorm"},
    0x6D: {0xD49: "Azure Cobalt 100"},
    0xC0: {0xAC3: "Ampere-1", 0xAC4: "Ampere-1a"},
}  # fmt: skip
_FIELDS = re.compile(r"^CPU (implementer|part|variant|revision)\s*:\s*(\w+)$", re.MULTILINE)


def parse_arm_model(cpuinfo: str) -> Optional[str]:
    """Return the kinds of CPU in /proc/cpuinfo, such as "ARM Neoverse-N1 r3p1"; None without."""
    kinds = (_name(dict(_FIELDS.findall(block))) for block in cpuinfo.split("\n\n"))
    return ", ".join(dict.fromkeys(kind for kind in kinds if kind)) or None


def _name(fields: dict[str, str]) -> Optional[str]:
    try:
        numbers = {name: int(text, 0) for name, text in fields.items()}
    except ValueError:
        return None
    if not {"implementer", "part"} <= numbers.keys():
        return None
    maker, part = numbers["implementer"], numbers["part"]
    words = [
        _IMPLEMENTERS.get(maker, f"CPU of implementer {maker:#x}"),
        _PARTS.get(maker, {}).get(part, f"part {part:#x}"),
    ]
    if {"variant", "revision"} <= numbers.keys():
        words.append(f"r{numbers['variant']}p{numbers['revision']}")
    return " ".join(words)
