"""What no page and no stranger may have a browser do, and what no request may cost."""

from typing import Any
from uuid import UUID

import pytest
from django.core.files.uploadhandler import FileUploadHandler
from django.test import Client
from django.urls import reverse

from orchestrator.web.middleware import MOST_BODY_BYTES
from tests.support.factories import PASSWORD, Personas
from tests.support.html_pages import csrf_token

LOGIN = reverse("login")


def logged_in(name: str) -> Client:
    client = Client(enforce_csrf_checks=True)
    token = csrf_token(client.get(LOGIN))
    form = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": token}
    assert client.post(LOGIN, form).status_code == 302
    return client


def test_a_form_of_another_site_is_refused(personas: Personas) -> None:
    client = logged_in("alice")
    form = {"slug": "x", "name": "x", "repository_url": "https://example.org/x.git"}
    for page in (reverse("project-new"), reverse("run-new"), reverse("logout")):
        assert client.post(page, form).status_code == 403
    token = client.cookies["csrftoken"].value
    foreign = client.post(
        reverse("logout"),
        {"csrfmiddlewaretoken": token},
        headers={"Origin": "https://evil.example"},
    )
    assert foreign.status_code == 403
    assert not personas.alice.team.projects.filter(slug="x").exists()
    # It is the token that was missing.
    assert client.post(reverse("logout"), {"csrfmiddlewaretoken": token}).status_code == 302


def test_a_large_announced_body_of_a_stranger_is_refused(
    db: None, client: Client, monkeypatch: Any
) -> None:
    read: list[int] = []
    monkeypatch.setattr(FileUploadHandler, "new_file", lambda *_, **__: read.append(1))
    huge = {"CONTENT_LENGTH": str(MOST_BODY_BYTES + 1)}
    for path in (LOGIN, "/api/v1/results/files", reverse("forge-hook", args=[UUID(int=1)])):
        answer = client.post(path, b"x", content_type="multipart/form-data; boundary=x", **huge)
        assert answer.status_code == 413, path
    api = client.post("/api/v1/results", b"x", content_type="application/json", **huge)
    assert api.headers["Content-Type"] == "application/problem+json"
    assert "parts" in api.json()["detail"]
    assert read == []


def test_an_address_with_a_nul_byte_is_refused(personas: Personas) -> None:
    client = logged_in("alice")
    for path in (
        "/runs/?page=%00",
        "/compare/?benchmark=a%00b",
        "/reports/a%00b/",
        "/login?next=%00",
    ):
        assert client.get(path).status_code == 400, path
    assert client.get("/runs/?page=%2500").status_code == 200


@pytest.mark.parametrize("path", ["/login", "/nowhere", "/api/v1/runs", "/api/v1/docs"])
def test_every_response_has_the_security_headers(path: str, db: None, client: Client) -> None:
    headers = client.get(path).headers
    assert "camera=()" in headers["Permissions-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    policy = headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def test_the_session_cookie_is_hidden_from_scripts_and_other_sites(personas: Personas) -> None:
    cookie = logged_in("alice").cookies["sessionid"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


def test_login_attempts_are_counted_by_the_address_that_our_proxy_saw(
    personas: Personas, settings: Any
) -> None:
    """Whatever the caller puts before it; and others behind that proxy are not locked out."""
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1

    def guess(seen: str, forged: str, name: str, password: str = "guess") -> Any:
        sent = {"X-Forwarded-For": f"{forged}, {seen}"}
        return Client(REMOTE_ADDR="10.0.0.1").post(
            LOGIN, {"username": name, "password": password}, headers=sent
        )

    for number in range(30):
        guess("203.0.113.9", f"198.51.100.{number}", f"nobody{number}")
    late = guess("203.0.113.9", "198.51.100.99", "alice", PASSWORD)
    assert "Too many failed attempts" in late.content.decode()
    assert guess("203.0.113.10", "203.0.113.9", "alice", PASSWORD).status_code == 302
