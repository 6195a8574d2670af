"""What identifies this machine, and this work directory on it."""

from __future__ import annotations

import hashlib
import os
import uuid
from pathlib import Path
from typing import Optional

from .linux.facts import read_text

#: The file of the id of an installation of the agent, in the work directory.
INSTALLATION = "installation"
_MACHINE_ID_FILES = ("etc/machine-id", "var/lib/dbus/machine-id")
_ID_LENGTH = 32


def read_machine_id(system: Path = Path("/")) -> Optional[str]:
    """Return a hash of the id that Linux gave to the machine; None without one.

    The id itself is confidential (machine-id(5)): other programs use it as a secret.
    """
    for name in _MACHINE_ID_FILES:
        text = read_text(system / name)
        if text and len(text) == _ID_LENGTH and text.isalnum():
            return hashlib.sha256(f"pitwall machine {text}".encode()).hexdigest()[:_ID_LENGTH]
    return None


def ensure_installation_id(root: Path) -> str:
    """Return the random id of the work directory; the first call creates it."""
    path = root / INSTALLATION
    known = read_text(path)
    if known:
        return known[:_ID_LENGTH]
    # A link fails if another agent was faster. So all of them return the id of the first.
    part = root / f"{INSTALLATION}.{os.getpid()}.part"
    part.write_text(uuid.uuid4().hex)
    try:
        os.link(part, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        os.replace(part, path)
        return path.read_text()
    finally:
        part.unlink(missing_ok=True)
    return path.read_text().strip()[:_ID_LENGTH]
