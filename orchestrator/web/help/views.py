"""The documentation: every document of this installation, for everybody."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from orchestrator.web.help.documents import INDEX, PICTURE, load_document, load_text
from orchestrator.web.pictures import build_picture_response


@require_safe
def document(request: HttpRequest, name: str = INDEX) -> HttpResponse:
    """Show a document or the list of a folder; return charts, and other files as plain text."""
    if name.endswith(PICTURE):
        return build_picture_response(load_text(name))
    if not name.endswith((".md", "/")):
        return HttpResponse(load_text(name), content_type="text/plain; charset=utf-8")
    context = {"document": load_document(name), "is_index": name == INDEX}
    return render(request, "help/document.html", context)
