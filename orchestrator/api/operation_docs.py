"""The operations and schemas of the OpenAPI document, described for the pages that show them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from orchestrator.api.operation_examples import Examples, build_examples

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
    """`group` is the tag. Each group has one page."""

    id: str
    group: str
    method: str
    path: str
    summary: str
    description: SafeString
    parameters: tuple[FieldDoc, ...]
    body: TypeName | None
    answers: tuple[AnswerDoc, ...]
    examples: Examples


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDoc:
    name: str
    description: SafeString
    values: tuple[str, ...]
    fields: tuple[FieldDoc, ...]


def iterate_operations(schema: Json) -> Iterator[OperationDoc]:
    schemas = schema["components"]["schemas"]
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield OperationDoc(
                id=operation["operationId"],
                group=operation["tags"][0],
                method=method.upper(),
                path=path,
                summary=operation["summary"],
                description=render_description(operation.get("description", "")),
                parameters=tuple(_describe_parameter(each) for each in operation["parameters"]),
                body=_find_body_type(operation.get("requestBody", {})),
                answers=tuple(
                    AnswerDoc(
                        status=str(status),
                        description=render_description(answer["description"]),
                        type=_find_body_type(answer),
                    )
                    for status, answer in operation["responses"].items()
                ),
                examples=build_examples(method, path, operation, schemas),
            )


def find_used_schemas(schema: Json, group: str) -> frozenset[str]:
    """Return the names of the schemas of a group's operations, and of those inside of them."""
    schemas = schema["components"]["schemas"]
    operations = [each for methods in schema["paths"].values() for each in methods.values()]
    waiting = {
        name for each in operations if each["tags"] == [group] for name in _list_references(each)
    }
    used = set[str]()
    while waiting:
        used |= waiting
        waiting = {inner for name in waiting for inner in _list_references(schemas[name])} - used
    return frozenset(used)


def _list_references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            yield reference.rsplit("/", 1)[-1]
        for inner in value.values():
            yield from _list_references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _list_references(inner)


def iterate_schemas(schema: Json, names: frozenset[str]) -> Iterator[SchemaDoc]:
    schemas = schema["components"]["schemas"]
    for name in sorted(names):
        each = schemas[name]
        needed = each.get("required", [])
        yield SchemaDoc(
            name=name,
            description=render_description(each.get("description", "")),
            values=tuple(str(value) for value in each.get("enum", [])),
            fields=tuple(
                FieldDoc(
                    name=field,
                    place="",
                    type=describe_type(details),
                    required=field in needed,
                    description=render_description(details.get("description", "")),
                )
                for field, details in each.get("properties", {}).items()
            ),
        )


def render_description(text: str) -> SafeString:
    """Render a description of the schema as HTML: text in backticks is code."""
    return mark_safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)))


def describe_type(schema: Json) -> TypeName:
    """Describe a JSON Schema in a few words: `list of RunOut`, `string (uuid) or null`."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return TypeName(text=name, link=name)
    if options := schema.get("anyOf"):
        return _join_names(" or ".join, [describe_type(option) for option in options])
    if items := schema.get("items"):
        return _join_names(lambda names: f"list of {names[0]}", [describe_type(items)])
    if parts := schema.get("prefixItems"):
        return _join_names(
            lambda names: f"[{', '.join(names)}]", [describe_type(part) for part in parts]
        )
    if values := schema.get("enum"):
        return TypeName(text=" | ".join(str(value) for value in values), link=None)
    kind = schema.get("type", "any")
    return TypeName(text=f"{kind} ({schema['format']})" if "format" in schema else kind, link=None)


def _join_names(join: Any, names: list[TypeName]) -> TypeName:
    link = next((name.link for name in names if name.link), None)
    return TypeName(text=join([name.text for name in names]), link=link)


def _describe_parameter(parameter: Json) -> FieldDoc:
    return FieldDoc(
        name=parameter["name"],
        place=parameter["in"],
        type=describe_type(parameter["schema"]),
        required=parameter["required"],
        description=render_description(parameter.get("description", "")),
    )


def _find_body_type(holder: Json) -> TypeName | None:
    for content in holder.get("content", {}).values():
        return describe_type(content["schema"]) if "schema" in content else None
    return None
