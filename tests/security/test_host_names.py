"""A client cannot make Pitwall use another name of the server than its own."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.support.html_pages import elements


@pytest.fixture
def own_name(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["bench.example.org"]


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/api/v1/runs", "/no/such/page"])
def test_a_request_for_another_host_is_refused(path: str, own_name: None) -> None:
    answer = Client().get(path, headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert b"evil.example" not in answer.content


@pytest.mark.django_db
def test_headers_of_untrusted_proxies_have_no_effect(own_name: None) -> None:
    """No page leads to the name that such a header has."""
    forged = {
        "Host": "bench.example.org",
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Server": "evil.example",
        "X-Forwarded-Port": "666",
        "Forwarded": "host=evil.example;proto=https",
        "X-Original-URL": "/settings/members",
        "X-Rewrite-URL": "/settings/members",
    }
    answer = Client().get(reverse("login"), headers=forged)
    assert answer.status_code == 200
    assert elements(answer.text, "input[name=password]")
    leads = Client().get("/", headers=forged)
    for text in (answer.text, leads.headers.get("Location", ""), leads.text):
        assert "evil.example" not in text
        assert ":666" not in text
