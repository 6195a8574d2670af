"""Pitwall as docs/configuration.md has it deployed: nothing that Django warns of is left."""

import os
import subprocess
import sys

from devstack.places import CHECKOUT

PRODUCTION = {
    "DATABASE_URL": "postgresql://pitwall@127.0.0.1:1/pitwall",
    "PITWALL_SECRET_KEY": "2p4Z0sLr8kQ1xWvB7nYcT5mJ3hGdF6aUeRiOoPqXzKlMwNtS9C",
    "PITWALL_BASE_URL": "https://bench.example.org",
    "PITWALL_ALLOWED_HOSTS": "bench.example.org",
    "PITWALL_TRUSTED_PROXIES": "1",
}


def check(**changes: str) -> subprocess.CompletedProcess[str]:
    given = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=CHECKOUT, env={**given, **PRODUCTION, **changes}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def test_a_production_environment_has_no_warnings() -> None:
    done = check()
    assert (done.returncode, done.stderr) == (0, "")
    assert "no issues (2 silenced)" in done.stdout


def test_a_deployment_without_https_is_warned() -> None:
    done = check(PITWALL_BASE_URL="http://bench.example.org")
    assert done.returncode == 1
    for name in ("security.W004", "security.W008", "security.W012", "security.W016"):
        assert name in done.stderr
