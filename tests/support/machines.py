"""Machines that we do not have, as trees of /sys and /proc for the agent.

The golden files state where their contents come from. A range such as `{0..3}` in a path stands for
one file per number; in the content of such a file it stands for the number of that file.
"""

import re
from pathlib import Path
from typing import Any

import yaml

MACHINES = Path(__file__).parents[1] / "agents/platform/linux/machines"
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


def list_machine_names() -> list[str]:
    return sorted(path.stem for path in MACHINES.glob("*.yaml"))


def build_machine(name: str, root: Path) -> dict[str, Any]:
    """Write the files of the machine below `root`; return its golden file."""
    golden: dict[str, Any] = yaml.safe_load((MACHINES / f"{name}.yaml").read_text())
    for path, content in golden["files"].items():
        span = _RANGE.search(path)
        numbers = range(int(span[1]), int(span[2]) + 1) if span else ("",)
        for number in numbers:
            file = root / _RANGE.sub(str(number), path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_RANGE.sub(str(number), content).strip() + "\n")
    return golden
