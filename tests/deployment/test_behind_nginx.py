"""docs/deployment.md, followed literally: people log in through a real nginx."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher, make_password
from django.urls import reverse

from orchestrator.accounts.models import User
from orchestrator.core.issued_secrets import Kind, new_secret
from orchestrator.web.middleware import MOST_BODY_BYTES
from tests.deployment.proxied import NAME, Site, block, deployed, environment, manage
from tests.support.engine import own_database_url
from tests.support.factories import PASSWORD, make_personas

LOGIN = reverse("login")
#: Where an address has a secret of ours.
WITH_A_SECRET = (
    "/invitations/{}", "/setup/{}", "/shared/{}/runs/", "/shared/{}", "//shared/{}/", "/nowhere/{}",
    "/login?next=%2Finvitations%2F{}", "/?back=/shared/{}/",
)  # fmt: skip
#: Below these nginx logs no errors.
QUIET = ("/invitations/", "/setup/", "/shared/", "/login")
TOO_LONG = ("--header", "Content-Length: 99999999", "--data", "x")

pytestmark = [pytest.mark.engine, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def servers(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """gunicorn and nginx. They keep nothing of a test, so they are started once."""
    with deployed(tmp_path_factory.mktemp("site"), block("nginx")) as site:
        yield site


@pytest.fixture
def site(servers: Site, tmp_path: Path) -> Site:
    """With the user alice, and for a client without cookies."""
    make_personas()
    # The tests' own quick hasher is not among those of the deployed process.
    password = make_password(PASSWORD, hasher=Argon2PasswordHasher())
    User.objects.filter(username="alice").update(password=password)
    return replace(servers, folder=tmp_path)


def test_a_user_logs_in_reads_a_page_and_sends_a_form(site: Site) -> None:
    first = site.curl(f"http://{NAME}{LOGIN}", "--location", "--max-redirs", "3")
    assert first.status == 200
    assert first.head.count("HTTP/1.1 301") == 1, "from http to https, once"
    sent = ("--data-urlencode", f"csrfmiddlewaretoken={first.form_token()}")
    who = ("--data-urlencode", "username=alice", "--data-urlencode", f"password={PASSWORD}")
    here = ("--header", f"Origin: https://{NAME}", "--location", "--max-redirs", "5")
    inside = site.curl(f"https://{NAME}{LOGIN}", *sent, *who, *here)
    assert inside.status == 200, inside.head
    assert 'name="password"' not in inside.body
    assert {"Secure", "HttpOnly"} <= set(re.split("; ?", inside.cookie("sessionid")))
    assert "Secure" in re.split("; ?", inside.cookie("csrftoken"))
    assert "strict-transport-security: max-age=" in inside.head.lower()
    out = site.curl(
        f"https://{NAME}{reverse('logout')}",
        *("--data-urlencode", f"csrfmiddlewaretoken={inside.form_token()}", *here),
    )
    assert out.status == 200
    again = site.curl(f"https://{NAME}/", "--location", "--max-redirs", "5")
    assert 'name="password"' in again.body


def test_nginx_accepts_long_uploads_and_overwrites_forwarded_headers_of_clients(
    site: Site, tmp_path: Path
) -> None:
    """An answer of Pitwall shows that nginx has let an upload pass."""
    forged = ("--header", "X-Forwarded-Proto: http", "--header", "X-Forwarded-For: 127.0.0.1")
    assert site.curl(f"https://{NAME}{LOGIN}", *forged).status == 200, "it came by HTTPS"
    assert site.curl(f"https://{NAME}/metrics", *forged).status == 403, "it is not this machine"
    assert site.curl(f"https://{NAME}{LOGIN}", "--header", "Host: evil.example").status == 400
    body = tmp_path / "upload"
    with body.open("wb") as file:
        file.truncate(MOST_BODY_BYTES - 1024)
    options = ("--data-binary", f"@{body}", "--header", "Content-Type: application/json")
    answer = site.curl(f"https://{NAME}/api/v1/results", *options)
    assert answer.status == 401, answer.body
    assert "nginx" not in answer.body


def test_nginx_logs_no_secret_from_a_url(site: Site) -> None:
    """Its log of errors has the whole request as well, where a request fails."""
    secrets = [new_secret(kind).text for kind in (Kind.INVITATION, Kind.SHARED_LINK, Kind.SETUP)]
    # What an identity provider sends back has no prefix of ours.
    code = "a-code-of-an-identity-provider"
    paths = [path.format(secret) for secret in secrets for path in WITH_A_SECRET]
    paths.append(f"/login/oidc/callback?state=x&code={code}")
    referer = ("--header", f"Referer: https://{NAME}/invitations/{secrets[0]}")
    site.curl(f"http://{NAME}{paths[0]}", *referer)
    for path in paths:
        site.curl(f"https://{NAME}{path}", *referer)
    for path in (*(each for each in paths if each.startswith(QUIET)), "/runs/"):
        failed = site.curl(f"https://{NAME}{path}", *TOO_LONG)
        assert failed.status == 413
    logged = site.logged()
    assert not [secret for secret in (*secrets, code) if secret[8:-8] in logged]
    for path in ("/invitations", "/setup", "/shared", "/login/oidc/callback"):
        assert f'"GET {path}/REDACTED HTTP/1.1" ' in logged
    assert "too large body" in logged, "other errors are logged"


def test_a_proxy_without_the_scheme_header_is_reported_instead_of_a_redirect_loop(
    tmp_path: Path,
) -> None:
    line = "proxy_set_header X-Forwarded-Proto $scheme;"
    assert line in block("nginx")
    with deployed(tmp_path, block("nginx").replace(line, "")) as site:
        answer = site.curl(f"https://{NAME}{LOGIN}", "--location", "--max-redirs", "5")
        assert answer.status == 502
        assert "X-Forwarded-Proto" in answer.body


def test_the_doctor_accepts_the_documented_environment() -> None:
    given = {**environment(), "DATABASE_URL": own_database_url()}
    assert "no issues" in manage(given, "check", "--deploy", "--fail-level", "WARNING")
    # No worker runs here, so the doctor ends with 1; these lines are about the settings.
    report = manage(given, "doctor", status=1)
    for part in ("address", "allowed hosts", "proxies", "repositories", "secret key"):
        assert re.search(rf"(?m)^ok +{part}\b", report), report
