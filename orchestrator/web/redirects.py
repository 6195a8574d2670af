"""Back to the page that a button was pressed on."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme


def back_from(request: HttpRequest, otherwise: str) -> HttpResponse:
    """To the look that the form names in `back`, if it is a page of ours."""
    back = request.POST.get("back", "")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}):
        back = otherwise
    return redirect(back)
