"""The page with the API documentation, rendered from the schema without scripts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase

from orchestrator.api.served_schema import document

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeName:
    """A type in words, with a link to its schema if it is one of Pitwall's."""

    text: str
    link: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDoc:
    name: str
    place: str
    type: TypeName
    required: bool
    description: SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDoc:
    status: str
    description: SafeString
    type: TypeName | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationDoc:
    id: str
    method: str
    path: str
    summary: str
    description: SafeString
    parameters: tuple[FieldDoc, ...]
    body: TypeName | None
    answers: tuple[AnswerDoc, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDoc:
    name: str
    description: SafeString
    values: tuple[str, ...]
    fields: tuple[FieldDoc, ...]


class DocsPage(DocsBase):
    """A plain HTML page, allowed by the strict content security policy."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        context = {
            "title": f"{api.title} API, version {api.version}",
            "description": prose(api.description),
            "openapi_url": self.get_openapi_url(api, kwargs),
            "parts": _parts(),
        }
        return render(request, "api/docs.html", context)


@cache
def _parts() -> SafeString:
    """Render all operations and schemas once per process; they are the same for all users."""
    schema = document().schema
    context = {"operations": list(operations_of(schema)), "schemas": list(schemas_of(schema))}
    return render_to_string("api/docs_parts.html", context)


def operations_of(schema: Json) -> Iterator[OperationDoc]:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield OperationDoc(
                id=operation["operationId"],
                method=method.upper(),
                path=path,
                summary=operation["summary"],
                description=prose(operation.get("description", "")),
                parameters=tuple(_parameter(each) for each in operation["parameters"]),
                body=_content_type(operation.get("requestBody", {})),
                answers=tuple(
                    AnswerDoc(
                        status=str(status),
                        description=prose(answer["description"]),
                        type=_content_type(answer),
                    )
                    for status, answer in operation["responses"].items()
                ),
            )


def schemas_of(schema: Json) -> Iterator[SchemaDoc]:
    for name, each in sorted(schema["components"]["schemas"].items()):
        needed = each.get("required", [])
        yield SchemaDoc(
            name=name,
            description=prose(each.get("description", "")),
            values=tuple(str(value) for value in each.get("enum", [])),
            fields=tuple(
                FieldDoc(
                    name=field,
                    place="",
                    type=type_name(details),
                    required=field in needed,
                    description=prose(details.get("description", "")),
                )
                for field, details in each.get("properties", {}).items()
            ),
        )


def prose(text: str) -> SafeString:
    """Render a description of the schema as HTML: text in backticks is code."""
    return mark_safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)))


def type_name(schema: Json) -> TypeName:
    """Describe a JSON Schema in a few words: `list of RunOut`, `string (uuid) or null`."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return TypeName(text=name, link=name)
    if options := schema.get("anyOf"):
        return _joined(" or ".join, [type_name(option) for option in options])
    if items := schema.get("items"):
        return _joined(lambda names: f"list of {names[0]}", [type_name(items)])
    if parts := schema.get("prefixItems"):
        return _joined(lambda names: f"[{', '.join(names)}]", [type_name(part) for part in parts])
    if values := schema.get("enum"):
        return TypeName(text=" | ".join(str(value) for value in values), link=None)
    kind = schema.get("type", "any")
    return TypeName(text=f"{kind} ({schema['format']})" if "format" in schema else kind, link=None)


def _joined(join: Any, names: list[TypeName]) -> TypeName:
    link = next((name.link for name in names if name.link), None)
    return TypeName(text=join([name.text for name in names]), link=link)


def _parameter(parameter: Json) -> FieldDoc:
    return FieldDoc(
        name=parameter["name"],
        place=parameter["in"],
        type=type_name(parameter["schema"]),
        required=parameter["required"],
        description=prose(parameter.get("description", "")),
    )


def _content_type(holder: Json) -> TypeName | None:
    for content in holder.get("content", {}).values():
        return type_name(content["schema"]) if "schema" in content else None
    return None
