"""The demo: three commits of a small server, measured and compared through the REST API.

The stack runs already, and its settings are in the environment. Exit status 0 means that Pitwall
reported a regression for the slower commit, and none for the commit without a change.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from devstack.demo_client import Client
from devstack.demo_progress import find_pause, follow
from devstack.demo_repository import Commits, create_demo_repository
from devstack.demo_tables import render_comparison
from devstack.errors import DevstackError
from devstack.places import CHECKOUT

ROUNDS = 7
#: A poll uses CPU time of the machine that is measured.
POLL_S = 5.0
QUIETER = "The reasons are listed above: stop other programs, and run it again."
NOISY = "If its intervals are wide, the speed of this machine varied: run it again later."


class DemoError(DevstackError):
    """The demo did not have the expected result."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m devstack.demo", description=__doc__)
    parser.add_argument("folder", type=Path, help="the instance's folder")
    parser.add_argument("--api", metavar="URL", help="default: PITWALL_BASE_URL")
    parser.add_argument("--ssh", metavar="LOGIN@ADDRESS:PORT", help="the host to measure on")
    parser.add_argument("--authorized-keys", type=Path, help="authorized_keys file of that login")
    options = parser.parse_args()
    ssh = ("--ssh", options.ssh, "--authorized-keys", str(options.authorized_keys))
    try:
        run_demo(options.folder, options.api, ssh if options.ssh else ())
    except DevstackError as error:
        print(f"\nThe demo failed: {error}", flush=True)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def run_demo(folder: Path, api: str | None, ssh: Sequence[str]) -> None:
    """Raise DevstackError if it cannot run; `ssh` are arguments for `seed_demo`."""
    repository = folder / "hello-server"
    commits = create_demo_repository(repository)
    seed = seed_demo(repository, ssh)
    url = os.environ["PITWALL_BASE_URL"]
    client = Client(api or url, seed["token"])
    sign_in(url, seed)
    run = measure(client, seed, commits)
    harmless = compare(client, run, commits.first, commits.harmless)
    slower = compare(client, run, commits.first, commits.slower)
    for comparison in (harmless, slower):
        print(render_comparison(comparison), flush=True)
    judge(harmless["verdict"], slower["verdict"], count_excluded_blocks(slower))


def seed_demo(repository: Path, ssh: Sequence[str]) -> dict[str, Any]:
    """Create the data of the demo: a team, a user, a token, a host, the benchmark."""
    argv = [sys.executable, str(CHECKOUT / "manage.py"), "seed_demo", "--json"]
    done = subprocess.run(
        [*argv, "--server-repository", str(repository), *ssh], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise DemoError(f"manage.py seed_demo failed.\n{done.stderr.strip()}")
    seed: dict[str, Any] = json.loads(done.stdout)
    return seed


def sign_in(url: str, seed: dict[str, Any]) -> None:
    password = seed["password"] or "(the one that was printed the first time)"
    print(f"\n  Open {url}\n  user {seed['user']}, password {password}\n", flush=True)


def measure(client: Client, seed: dict[str, Any], commits: Commits) -> dict[str, Any]:
    """Start the run and follow it to its end."""
    wanted = {
        "benchmark": seed["benchmark"],
        "baseline": commits.first,
        "contenders": [commits.harmless, commits.slower],
        "hosts": [seed["host"]],
        "rounds": ROUNDS,
    }
    run = client.get(f"/api/v1/runs/{client.post('/api/v1/runs', wanted)['id']}")
    print(f"  Measuring three commits of a small server, {ROUNDS} rounds. {run['web_url']}")
    run = follow(client, run, poll_s=POLL_S, until_paused=True)
    if pause := find_pause(run):
        raise DemoError(f"{pause} See {run['web_url']}")
    if run["state"] != "finished":
        raise DemoError(f"the run is {run['state']}: {run['message']} See {run['web_url']}")
    print()
    return dict(run)


def compare(client: Client, run: dict[str, Any], baseline: str, contender: str) -> dict[str, Any]:
    query = {"run": run["id"], "baseline": baseline, "contender": contender}
    comparison: dict[str, Any] = client.get("/api/v1/comparisons", **query)
    return comparison


def count_excluded_blocks(comparison: dict[str, Any]) -> int:
    return sum(case["excluded_blocks"] for case in comparison["cases"])


def judge(harmless: str, slower: str, excluded: int) -> None:
    """Raise DemoError unless both verdicts are right.

    `excluded`: the excluded blocks of the slower commit.
    """
    if harmless == "regressed":
        raise DemoError("Pitwall reported a regression for the commit that changes nothing.")
    if slower != "regressed":
        why = f"{excluded} blocks were excluded. {QUIETER}" if excluded else NOISY
        raise DemoError(f"the verdict for the slower commit is {slower}, not regressed. {why}")
    print(
        "Pitwall reported a regression for the slower commit, and none for the one that changes "
        "nothing.",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
