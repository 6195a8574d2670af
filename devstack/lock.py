"""Write the lock files with hashes: `python -m devstack.lock` (or `make lock`).

Their sources are in pyproject.toml: `dependencies` for requirements.txt, and each dependency group
for requirements/<group>.txt. Versions stay as they are unless `--upgrade` is given or the project
excludes them.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib

from devstack.bootstrap import DEV_LOCK, LOCK, find_uv_on_path, install_uv
from devstack.places import CHECKOUT

# One file for every platform and every Python from the oldest on.
OPTIONS = ("--universal", "--python-version", "3.11", "--generate-hashes", "--no-header", "--quiet")


def main() -> int:
    uv = find_uv_on_path() or install_uv()
    if uv is None:
        print("pitwall: there is no uv, and pip cannot install one.", file=sys.stderr)
        return 1
    for name, sources in lock_sources().items():
        argv = [uv, "pip", "compile", *OPTIONS, *sys.argv[1:], *sources, "-o", name]
        status = subprocess.run(argv, cwd=CHECKOUT).returncode
        if status != 0:
            return status
    return 0


def lock_sources() -> dict[str, list[str]]:
    """Return lock file → arguments that name its sources; packages of a server come first."""
    groups = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["dependency-groups"]
    sources = {LOCK: ["pyproject.toml"]}
    sources.update({f"requirements/{group}.txt": ["--group", group] for group in groups})
    # Both are installed into one environment.
    sources[DEV_LOCK] += ["-c", LOCK]
    return sources


if __name__ == "__main__":
    sys.exit(main())
