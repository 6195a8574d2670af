"""`make run` on an instance without users, and `make manage` on the same database."""

import http.cookiejar
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator

import pytest

from devstack.places import CHECKOUT, STATE
from tests.support.html_pages import csrf_token
from tests.support.programs import tool

#: Those of the tests' own servers, and what tests say of Django: the instance makes its own.
NOT_PASSED_ON = ("DATABASE_URL", "REDIS_URL", "PITWALL_SECRET_KEY", "DJANGO_SETTINGS_MODULE")
ACCOUNT = {
    "team": "Web servers",
    "username": "olivia",
    "password": "correct horse battery",
    "again": "correct horse battery",
}


@pytest.fixture
def instance() -> Iterator[str]:
    tool("oha")
    name = f"test-first-user-{os.getpid()}"
    yield name
    shutil.rmtree(STATE / name, ignore_errors=True)


def devstack(*words: str) -> subprocess.Popen[str]:
    env = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
    return subprocess.Popen(
        [sys.executable, "-m", "devstack", *words],
        cwd=CHECKOUT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def managed(instance: str, *words: str) -> str:
    process = devstack("manage", "--name", instance, "--", *words)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, out
    return out


@pytest.mark.slow
def test_make_run_prints_a_link_that_creates_the_first_user(instance: str) -> None:
    server = devstack("run", "--name", instance)
    assert server.stdout
    try:
        link = first_match(server.stdout, r"http://\S+/setup/\S+")
        sent = send_form(link, ACCOUNT)
        assert "You are the owner of Web servers." in sent
        with pytest.raises(urllib.error.HTTPError, match="410"):
            send_form(link, ACCOUNT)
        base = link.partition("/setup/")[0]
        assert f"{base}/invitations/pwi_" in managed(instance, "create_team", "red")
        log = (STATE / instance / "logs" / "web.log").read_text()
        assert "/setup/pwsetup_REDACTED" in log
        assert link.rsplit("/", 1)[1] not in log
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)
    assert "there is already a team red" in refused(instance, "create_team", "red")


def first_match(lines: Iterator[str], pattern: str) -> str:
    """The first text that matches; the test fails where the output ends before."""
    seen = []
    for line in lines:
        seen.append(line)
        if match := re.search(pattern, line):
            return match[0]
    pytest.fail("".join(seen))


def send_form(link: str, fields: dict[str, str]) -> str:
    """The page after the form of the page at `link` was sent, as a browser sends it."""
    cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
    page = browser.open(link, timeout=30).read().decode()
    body = urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": csrf_token(page)}).encode()
    return str(browser.open(link, body, timeout=30).read().decode())


def refused(instance: str, *words: str) -> str:
    process = devstack("manage", "--name", instance, "--", *words)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 1, out
    return out
