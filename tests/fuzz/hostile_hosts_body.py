"""The hostile agent with a separate database: `python -m tests.fuzz.inputs` starts it.

The last line is one JSON object.
"""

import argparse
import json
import logging
import os
import sys
import tempfile
from pathlib import Path

# Set this before Django reads its settings: the repository is a folder of this machine.
os.environ["PITWALL_ALLOW_LOCAL_REPOSITORIES"] = "1"
os.environ["DJANGO_SETTINGS_MODULE"] = "orchestrator.config.settings"
import perf.harness.django_setup  # noqa: F401

# isort: split
from django.db import connection
from django.test import override_settings

from tests.fuzz.hostile_hosts import HostTally, fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.hostile_hosts_body")
    parser.add_argument("--polls", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # Each lie is logged; the findings are printed below.
    logging.disable(logging.CRITICAL)
    usual = connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        seen = tried(options)
    finally:
        connection.creation.destroy_test_db(str(usual), verbosity=0)
    print("\n".join(seen.faults[:40]), file=sys.stderr)
    print(json.dumps(build_counts(seen)))
    return 1 if seen.faults else 0


def tried(options: argparse.Namespace) -> HostTally:
    with tempfile.TemporaryDirectory(prefix="pwh-") as name:
        folder = Path(name)
        with override_settings(DATA_DIR=folder / "data"):
            return fuzz(folder, options.polls, options.seed)


def build_counts(seen: HostTally) -> dict[str, object]:
    return {
        "polls": seen.polls,
        "stored": seen.stored,
        "ended": seen.ended,
        "slowest_s": round(seen.slowest_s, 2),
        "grown_mib": round(seen.grown_bytes / 2**20),
        "findings": len(seen.faults),
    }


if __name__ == "__main__":
    sys.exit(main())
