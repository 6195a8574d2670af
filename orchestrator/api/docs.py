"""The pages of the API documentation, rendered from the schema without scripts.

There is an index of all operations, and one page for each group with the schemas that it uses.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase

from orchestrator.api.operation_docs import (
    OperationDoc,
    find_used_schemas,
    iterate_operations,
    iterate_schemas,
    render_description,
)
from orchestrator.api.served_openapi import load_document


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The operations with one tag, `name`."""

    name: str
    operations: tuple[OperationDoc, ...]

    @property
    def title(self) -> str:
        return self.name.capitalize()


class DocsPage(DocsBase):
    """The index, a plain HTML page that the strict content security policy allows."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        context = {
            "title": f"{api.title} API, version {api.version}",
            "description": render_description(api.description),
            "openapi_url": self.get_openapi_url(api, kwargs),
            "groups": _load_groups().values(),
        }
        return render(request, "api/docs.html", context)


@require_safe
def group_page(request: HttpRequest, name: str) -> HttpResponse:
    """Show the operations of a group, with their parameters and examples."""
    group = _load_groups().get(name)
    if group is None:
        raise Http404(f"there is no group {name} of operations")
    context = {"group": group, "groups": _load_groups().values(), "parts": _render_parts(name)}
    return render(request, "api/group.html", context)


@cache
def _load_groups() -> dict[str, Group]:
    operations = list(iterate_operations(load_document().schema))
    names = sorted({each.group for each in operations})
    return {
        name: Group(name=name, operations=tuple(each for each in operations if each.group == name))
        for name in names
    }


@cache
def _render_parts(name: str) -> SafeString:
    """Render the operations and schemas of a group once per process; `name` is a known one."""
    schema = load_document().schema
    context = {
        "operations": _load_groups()[name].operations,
        "schemas": list(iterate_schemas(schema, find_used_schemas(schema, name))),
    }
    return render_to_string("api/docs_parts.html", context)
