"""Parts of a test host other than its network and processes: a disk, a clock, knobs."""

import re
import subprocess
import uuid
from pathlib import Path

_SHIFTED_CLOCK = Path(__file__).with_name("shifted_clock")
#: Files of the kernel that hosts would share, with the value after a start.
_OWN_KERNEL = {"vm/swappiness": "60", "kernel/random/boot_id": "{boot_id}"}
#: The agent is run without `site`, which loads the shifted clock.
_PYTHON_WITH_SITE = """\
#!/bin/sh
while [ "$1" = -I ] || [ "$1" = -S ]; do shift; done
exec python3 "$@"
"""


def forget_kernel(folder: Path) -> None:
    """Reset the state as after each start: a new boot, and default knobs."""
    for name, value in _OWN_KERNEL.items():
        path = folder / "kernel" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value.format(boot_id=uuid.uuid4()) + "\n")


def mount_disk(path: Path, size: int, name: str) -> None:
    """Mount a disk of `size` bytes. The network recognises it by its name when it is removed."""
    options = ("-t", "tmpfs", "-o", f"size={size},mode=700", name, str(path))
    subprocess.run(["mount", *options], check=True)


def give_clock(folder: Path) -> None:
    """Shift the clock of all Python programs that sshd starts on the host."""
    set_clock(folder / "clock", 0)
    (folder / "python").write_text(_PYTHON_WITH_SITE)
    (folder / "python").chmod(0o755)
    config = folder / "sshd_config"
    more = f"PITWALL_TEST_CLOCK={folder}/clock PYTHONPATH={_SHIFTED_CLOCK}"
    # A second SetEnv would be ignored.
    config.write_text(re.sub("^SetEnv .*", rf"\g<0> {more}", config.read_text(), flags=re.M))


def set_clock(path: Path, seconds: int) -> None:
    new = path.with_suffix(".new")
    new.write_text(f"{seconds:+d}\n")
    new.rename(path)
