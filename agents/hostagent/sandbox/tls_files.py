"""The certificates of a job as files, and their placeholders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Optional

from ..paths import StepDir
from ..step.plan import Plan


def write_tls(step: StepDir, plan: Plan) -> None:
    """Write the TLS files of this host; only the owner may read the folder and the key."""
    if plan.tls is None:
        return
    step.tls.mkdir(mode=0o700, exist_ok=True)
    for name, pem in plan.tls._asdict().items():
        if pem is not None:
            _write(step.tls / f"{name}.pem", pem, 0o600 if name == "key" else 0o644)


def list_tls_placeholders(step: StepDir, plan: Plan) -> dict[str, str]:
    """Return {ca}, {cert} and {key}, if this host has them."""
    pems = plan.tls._asdict() if plan.tls else {}
    return {name: str(step.tls / f"{name}.pem") for name, pem in pems.items() if pem is not None}


def get_ca_file(step: StepDir, plan: Plan) -> Optional[Path]:
    """Return the CA of the server under test; None without certificates."""
    return step.tls / "ca.pem" if plan.tls else None


def _write(path: Path, text: str, mode: int) -> None:
    """Write atomically; the file is never readable for others, not even before its rename."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
    os.replace(part, path)
