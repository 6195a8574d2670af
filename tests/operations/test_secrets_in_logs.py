"""A real gunicorn writes no secret of an address into its log, in either format."""

import contextlib
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from devstack.instance import choose_port
from devstack.places import CHECKOUT
from orchestrator.core.issued_secrets import Kind, has_secret, new_secret, redact_secrets

#: What asks with a secret in its path, its query or its referer; the answers are 404, 410 or 500.
PATHS = ("/invitations/{}", "/shared/{}/runs/", "/shared/{}/nowhere", "/setup/{}", "/nowhere/{}",
         "/login?next=/invitations/{}", "/login?next=%2Finvitations%2F{}",
         "/login/oidc/callback?state=x&code={}")  # fmt: skip
#: It has no prefix of ours.
CODE = "4/a-code-of-an-identity-provider"


@pytest.mark.parametrize("log_format", ["line", "json"])
def test_no_secret_of_a_url_is_logged(log_format: str, tmp_path: Path) -> None:
    port, log = choose_port(), tmp_path / "log"
    secrets = [new_secret(kind).text for kind in (Kind.INVITATION, Kind.SHARED_LINK, Kind.SETUP)]
    argv = [
        *(sys.executable, "-m", "gunicorn", "--config", "python:orchestrator.config.serving"),
        *("--workers", "1", "--bind", f"127.0.0.1:{port}", "--access-logfile", "-"),
        *("--access-logformat", '%(r)s %(U)s %(q)s %(f)s %(s)s "%(a)s"'),
    ]
    # Nobody has collected the static files, which pages name.
    env = {**os.environ, "PITWALL_LOG_FORMAT": log_format, "PITWALL_DEBUG": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(argv, cwd=CHECKOUT, env=env, stdout=out, stderr=out)
    try:
        wait_for(port, process, log)
        for secret in (*secrets, CODE):
            for path in PATHS[-1:] if secret == CODE else PATHS:
                address = f"http://127.0.0.1:{port}{path.format(secret)}"
                headers = {"Referer": f"http://127.0.0.1:{port}/invitations/{secrets[0]}"}
                with contextlib.suppress(urllib.error.HTTPError):
                    ask(urllib.request.Request(address, headers=headers))
    finally:
        process.terminate()
        process.wait(20)
    written = log.read_text()
    assert not [secret for secret in (*secrets, CODE) if secret[8:] in written]
    assert "/login/oidc/callback?state=x&code=REDACTED" in written
    for kind in ("pwi", "pws", "pwsetup"):
        assert f"/{kind}_REDACTED" in written
    # Both the line of the request and the warning of its page.
    lines = [line for line in written.splitlines() if "/nowhere/pwi_REDACTED" in line]
    assert any("HTTP/1.1" in line for line in lines), written
    assert any("django.request" in line for line in lines), written


def ask(request: object) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open(request, timeout=20).read()  # type: ignore[arg-type]


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            ask(f"http://127.0.0.1:{port}/healthz")
            return
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_of_secret_is_covered(kind: Kind) -> None:
    text = new_secret(kind).text
    for around in ("{}", "GET /x/{}/runs/ HTTP/1.1", "next=%2Finvitations%2F{}&x=1", '"{}"'):
        line = around.format(text)
        assert redact_secrets(line) == around.format(f"{kind}_REDACTED")
        assert has_secret(line)
    assert redact_secrets(text[:-10]).endswith("_REDACTED"), "also of a link that was cut off"
    encoded = text.replace("_", "%5F")
    assert redact_secrets(encoded) == f"{kind}_REDACTED"
    assert redact_secrets("pw_short and run_pw_x") == "pw_short and run_pw_x"
