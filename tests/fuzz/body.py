"""Fill a team, serve it as deployed, and run schemathesis against it.

The last line is JSON: the number of requests, the statuses, and the number of findings. `fetches`
counts the 503 of requests that name a branch: no fetcher runs, so each gets one. The exit status is
that of schemathesis. It is 1 if there were too few requests, or if the token was invalid at the
end, so that most requests had no effect.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections import Counter
from http import HTTPStatus
from pathlib import Path

# Set this before Django reads its settings: the repository is a folder of this machine.
os.environ["PITWALL_ALLOW_LOCAL_REPOSITORIES"] = "1"
import perf.harness.django_setup  # noqa: F401

# isort: split
from django.core.management import call_command
from django.db import connections

from devstack.places import CHECKOUT
from orchestrator.accounts.services import create_token
from orchestrator.alerts.models import Alert, Channel, Delivery
from orchestrator.benchmarks.models import Case
from orchestrator.fleet.models import Credential, Host
from orchestrator.forges.models import BenchmarkRequest
from orchestrator.reports.models import ReferenceSource
from orchestrator.results.models import ChangePoint
from orchestrator.runs.models import Build, Job, Run, Schedule, Trial
from perf.harness.environments import build_venv
from perf.harness.web_servers import collect_static, serve_web
from tests.support.demo_team import DemoTeam, make_demo_team

LOCK = CHECKOUT / "requirements" / "fuzz.txt"
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_headers_conformance", "response_schema_conformance", "negative_data_rejection",
    "missing_required_header", "unsupported_method", "allow_header_conformance", "ignored_auth",
    "use_after_free",
)  # fmt: skip
#: A request that names a branch waits for a fetch. The log shows statements that the database
#: stopped. A text of several MiB is refused with 413 before its length is compared to the schema.
EXPECTED = """\
[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 503]
negative_data_rejection.expected-statuses = ["4xx", 503]
"""
#: How many of each kind are created: enough for deleted ones to be followed by others.
OF_A_KIND = 12


def main() -> int:
    options = parse()
    with tempfile.TemporaryDirectory(prefix="pwf-") as name:
        folder = Path(name)
        collect_static()
        known = prepared(folder)
        with serve_web("orchestrator.config.wsgi", folder, {}) as site:
            (folder / "known.json").write_text(json.dumps(known))
            (folder / "schemathesis.toml").write_text(EXPECTED)
            url, token = f"http://127.0.0.1:{site.port}", str(known["token"])
            status = fuzz(url, folder, token, options)
            statuses = count_by_status(folder)
            is_known = is_taken(url, token)
        bugs = [line for log in folder.glob("web-*.log") for line in bug_lines(log)]
    made = sum(statuses.values())
    fetches = statuses.get("503", 0)
    errors = sum(count for code, count in statuses.items() if code >= "500") - fetches + len(bugs)
    passed = status == 0 and (made >= options.requests or options.few) and is_known and not errors
    print("\n".join(bugs[:60]))
    counts = {"requests": made, "statuses": dict(sorted(statuses.items())), "fetches": fetches}
    print(json.dumps({**counts, "token": is_known, "errors": errors, "passed": passed}))
    return status or (0 if passed else 1)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--requests", type=int, default=20_000, help="minimum number of requests")
    parser.add_argument("--examples", type=int, default=110, help="maximum per operation")
    parser.add_argument("--seconds", type=int, default=3600, help="time limit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a regular expression of paths")
    parser.add_argument("--few", action="store_true", help="do not fail after too few requests")
    return parser.parse_args()


def prepared(folder: Path) -> dict[str, object]:
    """Return the objects that the requests name, so that most requests find something."""
    call_command("migrate", verbosity=0)
    demo_team = make_demo_team(folder)
    member = demo_team.personas.alice
    made = create_token(member=member, name="fuzz")
    own = {"token_id": str(made.token.pk), "username": member.user.get_username()}
    known = {"token": made.secret, "own": own, **list_ids(demo_team)}
    connections.close_all()
    return known


def list_ids(demo_team: DemoTeam) -> dict[str, object]:
    def ids(model: type) -> list[str]:
        rows = model.objects.order_by("pk").values_list("pk", flat=True)  # type: ignore[attr-defined]
        return [str(each) for each in rows[:OF_A_KIND]]

    return {
        "run_id": ids(Run),
        "job_id": ids(Job),
        "trial_id": ids(Trial),
        "host_id": ids(Host),
        "credential_id": ids(Credential),
        "alert_id": ids(Alert),
        "channel_id": ids(Channel),
        "delivery_id": ids(Delivery),
        "request_id": ids(BenchmarkRequest),
        # Nothing is sent there: the tested server delivers nothing by itself.
        "target": ["https://hooks.example.org/x"],
        "api_url": ["https://git.example.org/api/v1"],
        "repository": ["ada/server"],
        "change_id": ids(ChangePoint),
        "build_id": ids(Build),
        "schedule_id": ids(Schedule),
        "reference_id": ids(ReferenceSource),
        "case": list(Case.objects.values_list("key", flat=True)[:OF_A_KIND]),
        "commit": [*demo_team.shas, demo_team.shas[0][:10]],
        "baseline": [demo_team.shas[0], "main~1", "merge-base:main", "newest-measured:main"],
        "contender": [demo_team.shas[1], "main"],
        "project": ["server"],
        "benchmark": ["hello", "many", "long"],
        "host": ["here"],
        "profile": ["any", "t490s"],
        "metric": ["requests.rate", "latency.p99"],
        "name": ["connections"],
        "version": ["1"],
    }


def fuzz(url: str, folder: Path, token: str, options: argparse.Namespace) -> int:
    program = build_venv("venv-fuzz", LOCK) / "st"
    argv = [
        str(program), "run", str(CHECKOUT / "docs" / "api" / "openapi.json"), "--url", url,
        "--header", f"Authorization: Bearer {token}", "--checks", ",".join(CHECKS),
        "--phases", "examples,coverage,fuzzing,stateful", "--max-examples", str(options.examples),
        "--max-time", str(options.seconds), "--seed", str(options.seed), "--workers", "2",
        "--continue-on-failure", "--no-shrink", "--request-timeout", "90", "--warnings", "off",
        "--generation-database", "none", "--suppress-health-check", "all", "--no-color",
        *(("--include-path-regex", options.only) if options.only else ()),
    ]  # fmt: skip
    environment = {
        **os.environ,
        "SCHEMATHESIS_HOOKS": "tests.fuzz.hooks",
        "PITWALL_FUZZ_KNOWN": str(folder / "known.json"),
        "PYTHONPATH": str(CHECKOUT),
    }
    return subprocess.run(argv, cwd=folder, env=environment).returncode


def is_taken(url: str, token: str) -> bool:
    """Return whether the token is still valid."""
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{url}/api/v1/members", headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return bool(opener.open(request, timeout=60).status == HTTPStatus.OK)
    except urllib.error.HTTPError:
        return False


def count_by_status(folder: Path) -> Counter[str]:
    """Return the number of requests by status, from the server's own log."""
    counts: Counter[str] = Counter()
    for log in folder.glob("access-*.log"):
        counts.update(line.split()[1] for line in log.read_text().splitlines())
    return counts


def bug_lines(log: Path) -> list[str]:
    """Return internal errors in the server's log: the last lines of each traceback."""
    lines = log.read_text(errors="replace").splitlines()
    indexes = [place for place, line in enumerate(lines) if " failed" in line and "ERROR" in line]
    return [
        text for place in indexes for text in (lines[place], _find_error_line(lines[place + 1 :]))
    ]


def _find_error_line(lines: list[str]) -> str:
    return next((line for line in lines if line and not line.startswith((" ", "Traceback"))), "")


if __name__ == "__main__":
    sys.exit(main())
