"""The hostile visitor with a separate database: `python -m tests.fuzz.inputs` starts it.

The last line is one JSON object.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

# Set this before Django reads its settings: the repository is a folder of this machine.
os.environ["PITWALL_ALLOW_LOCAL_REPOSITORIES"] = "1"
# All requests come from one address.
os.environ["PITWALL_VISITOR_REQUESTS_A_MINUTE"] = "0"
os.environ["PITWALL_SESSION_REQUESTS_A_MINUTE"] = "0"
os.environ["DJANGO_SETTINGS_MODULE"] = "orchestrator.config.settings"
import perf.harness.django_setup  # noqa: F401

# isort: split
from django.db import connection
from django.test import override_settings
from django.test.utils import setup_test_environment

from tests.fuzz.visitors import VisitorTally, add_unmeasured_branch, build_summary, fuzz
from tests.support.route_params import make_route_params
from tests.support.visitor_site import front_pages, plant_secrets, visitor_site

PLAIN = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.visitors_body")
    parser.add_argument("--requests", type=int, default=22_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    setup_test_environment()
    usual = connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        seen = tried(options)
    finally:
        connection.creation.destroy_test_db(str(usual), verbosity=0)
    print("\n".join(seen.faults), file=sys.stderr)
    print(f"the slowest: {seen.slowest[:300]}", file=sys.stderr)
    print(json.dumps(build_summary(seen)))
    return 1 if seen.faults else 0


def tried(options: argparse.Namespace) -> VisitorTally:
    with tempfile.TemporaryDirectory(prefix="pwv-") as name:
        folder = Path(name)
        storages = {"default": PLAIN, "staticfiles": PLAIN}
        # One address sends all requests; they must be answered, not limited.
        uncounted = {"VISITOR_REQUESTS_A_MINUTE": 0}
        with override_settings(DATA_DIR=folder / "data", STORAGES=storages, **uncounted):
            route_params = make_route_params(folder)
            unmeasured = add_unmeasured_branch(folder)
            plant_secrets()
            site = [*visitor_site(route_params), *front_pages(route_params)]
            return fuzz(site, unmeasured, options.requests, options.seed)


if __name__ == "__main__":
    sys.exit(main())
