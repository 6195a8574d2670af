"""Redirects back to the page with the pressed button."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme


def redirect_back(request: HttpRequest, otherwise: str) -> HttpResponse:
    """Return a redirect to the page in the form's field `back`, if it is a page of ours."""
    back = request.POST.get("back", "")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}):
        back = otherwise
    return redirect(back)
