"""`python -m tests`: what `make test` runs.

Without a path, the tests are split over several processes, file by file. Each process has its own
PostgreSQL and Redis. Tests marked `quiet` judge what they measure, so they run afterwards, alone.
With a path, all selected tests run in one process. Other options go to pytest.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys

from devstack.instance import MOST_COPIES
from devstack.places import CHECKOUT

#: Engines and hosts mostly wait, so there are more processes than CPUs. With three for each CPU,
#: real loads of tests got too little CPU time, and nothing was faster.
PROCESSES_PER_CPU = 2.5
#: pytest's status when it selected no test.
NO_TESTS = 5
PYTEST = (sys.executable, "-m", "pytest")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    parser.add_argument("--name", default="test", help="the servers' folder, under .pitwall")
    parser.add_argument("-m", dest="markers", default="", help="marker expression of pytest")
    options, rest = parser.parse_known_args()
    # With it, each of some hundred processes would compile all modules again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with_servers = [sys.executable, "-m", "devstack", "exec", "--name", options.name, "--"]

    if names_path(rest) or servers_are_given():
        markers = ["-m", options.markers] if options.markers else []
        return run(*with_servers, *PYTEST, *markers, *rest)
    selected = f"({options.markers or 'not slow'})"
    parallel = run(*PYTEST, *split(with_servers), "-m", f"{selected} and not quiet", *rest)
    quiet = run(*with_servers, *PYTEST, "-m", f"{selected} and quiet", *rest, *quiet_files())
    statuses = {parallel, quiet}
    if statuses == {NO_TESTS}:
        return NO_TESTS
    return max(statuses - {NO_TESTS})


def quiet_files() -> list[str]:
    """The test files that contain the word. Nothing else runs while pytest collects them."""
    files = sorted((CHECKOUT / "tests").rglob("test_*.py"))
    return [str(each.relative_to(CHECKOUT)) for each in files if "quiet" in each.read_text()]


def names_path(arguments: list[str]) -> bool:
    """Whether an argument selects a file, a folder or one test."""
    return any(
        not each.startswith("-") and (CHECKOUT / each.partition("::")[0]).exists()
        for each in arguments
    )


def servers_are_given() -> bool:
    """Whether the user gives servers. Several processes cannot share them."""
    return bool(os.environ.get("DATABASE_URL") or os.environ.get("REDIS_URL"))


def split(with_servers: list[str]) -> list[str]:
    """Options of pytest-xdist: as many processes as fit, each started with its own servers."""
    count = min(MOST_COPIES, round(PROCESSES_PER_CPU * (os.cpu_count() or 1)))
    python = shlex.join([*with_servers, sys.executable])
    return [f"--tx={count}*popen//python={python}", "--dist=loadfile", "--no-loadscope-reorder"]


def run(*argv: str) -> int:
    """The exit status of a command that uses this terminal, as a shell would give it."""
    status = subprocess.run(argv, cwd=CHECKOUT).returncode
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    sys.exit(main())
