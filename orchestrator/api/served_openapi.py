"""The served OpenAPI document: the committed file, read once by each process.

Generating it takes half a second of CPU, and clients without an account may request it.
"""

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

FILE = settings.BASE_DIR / "docs" / "api" / "openapi.json"
#: Browsers and proxies revalidate after this time, and mostly get 304.
FRESH_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The file, its entity tag, and its content."""

    content: bytes
    tag: str
    schema: dict[str, Any]


@cache
def load_document() -> Document:
    content = FILE.read_bytes()
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    return Document(content=content, tag=tag, schema=json.loads(content))


@require_safe
def serve_openapi(request: HttpRequest) -> HttpResponse:
    """Return the document to everybody; 304 if the client has it."""
    schema_file = load_document()
    known = get_conditional_response(request, etag=schema_file.tag)
    response = HttpResponse(schema_file.content, content_type="application/json")
    answer = response if known is None else HttpResponse(status=known.status_code)
    answer.headers["ETag"] = schema_file.tag
    answer.headers["Cache-Control"] = f"public, max-age={FRESH_S}"
    return answer
