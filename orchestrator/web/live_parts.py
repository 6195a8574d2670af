"""Pages with a part that htmx loads again while it may change."""

import json
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags


def render_live_page(
    request: HttpRequest, template: str, context: Mapping[str, Any], *, part: str, tag: str
) -> HttpResponse:
    """Return the page; htmx gets only its part, and 304 if it has the part with this tag.

    The tag changes with everything that the part shows, except the time. htmx sends it back in
    `poll_headers`.
    """
    asks_again = bool(request.headers.get("HX-Request"))
    if asks_again and tag in parse_etags(request.headers.get("If-None-Match", "")):
        response: HttpResponse = HttpResponseNotModified()
    else:
        name = f"{template}#{part}" if asks_again else template
        headers = json.dumps({"If-None-Match": tag})
        response = render(request, name, {**context, "poll_headers": headers})
    response.headers["ETag"] = tag
    response.headers["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ["HX-Request"])
    return response
