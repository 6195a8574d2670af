"""Redirects back to the page with the pressed button."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme


def redirect_back(request: HttpRequest, otherwise: str) -> HttpResponse:
    """Return a redirect to the page in the form's field `back`, if it is a page of ours."""
    return redirect(read_back(request, otherwise))


def read_back(request: HttpRequest, otherwise: str) -> str:
    """Return the address in the parameter `back`, or that of the page `otherwise`."""
    back = request.POST.get("back", request.GET.get("back", ""))
    if url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}):
        return back
    return reverse(otherwise)
