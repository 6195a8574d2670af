"""Responses with an SVG picture, such as a chart of a report."""

from django.http import HttpResponse

#: A picture runs nothing and loads nothing; it contains its own style sheet.
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"


def build_picture_response(svg: str) -> HttpResponse:
    return HttpResponse(
        svg, content_type="image/svg+xml", headers={"Content-Security-Policy": PICTURE_POLICY}
    )
