"""The command line, without a login: a CI fetches it before it has anything else of ours."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from cli.bundle import build_command


@require_safe
def command_line(request: HttpRequest) -> HttpResponse:
    """`pitwall` in one file, of the same version as this installation's API."""
    headers = {"Content-Disposition": 'attachment; filename="pitwall"'}
    return HttpResponse(build_command(), content_type="application/octet-stream", headers=headers)
