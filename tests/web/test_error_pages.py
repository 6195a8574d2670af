"""Each kind of error has its status and says what to do."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from orchestrator.core import errors
from orchestrator.web.errors import translate_errors


def _answer(error: Exception, **headers: str) -> HttpResponse | None:
    def get_response(request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    request = RequestFactory().get("/", headers=headers)
    request.user = AnonymousUser()
    return translate_errors(get_response).process_exception(request, error)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.NotFoundError, 404),
        (errors.PermissionRefusedError, 403),
        (errors.InvalidRequestError, 400),
        (errors.ConflictError, 409),
        (errors.HostError, 502),
        (errors.HostKeyMismatchError, 502),
        (errors.UnreachableError, 502),
        (errors.PitwallError, 500),
    ],
)
def test_each_error_has_its_status(kind: type[Exception], status: int) -> None:
    answer = _answer(kind("the <reason> and what to do"))

    assert answer is not None
    assert answer.status_code == status
    assert "The &lt;reason&gt; and what to do" in answer.content.decode()
    assert "<html" in answer.content.decode()


def test_htmx_gets_only_the_message() -> None:
    answer = _answer(errors.NotFoundError("gone"), hx_request="true")

    assert answer is not None
    assert answer.status_code == 404
    assert "Gone." in answer.content.decode()
    assert "<html" not in answer.content.decode()


def test_unexpected_errors_are_left_to_django() -> None:
    assert _answer(ValueError("a bug")) is None
