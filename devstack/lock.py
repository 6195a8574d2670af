"""Resolve the requirements anew, with hashes: `python -m devstack.lock` (or `make lock`).

What is locked stays as it is unless `--upgrade` is given or requirements*.in ask for more.
"""

from __future__ import annotations

import subprocess
import sys

from devstack.bootstrap import uv_of_ours, uv_on_path
from devstack.places import CHECKOUT

# One file for every platform and every Python from the oldest on.
OPTIONS = ("--universal", "--python-version", "3.11", "--generate-hashes", "--no-header", "--quiet")
FILES = (
    "requirements",
    "requirements-dev",
    "requirements-bench",
    "requirements-bench-detection",
    "requirements-fuzz",
    "requirements-docker",
    "requirements-traces",
    "requirements-audit",
)


def main() -> int:
    uv = uv_on_path() or uv_of_ours()
    if uv is None:
        print("pitwall: there is no uv, and pip cannot install one.", file=sys.stderr)
        return 1
    for name in FILES:
        argv = [uv, "pip", "compile", *OPTIONS, *sys.argv[1:], f"{name}.in", "-o", f"{name}.txt"]
        status = subprocess.run(argv, cwd=CHECKOUT).returncode
        if status != 0:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
