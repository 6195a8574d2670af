"""The JSON Schema of definitions, which editors use for completion and validation. No Django.

It is generated from the models. This module adds what validators in code define: sizes with a unit,
the names of load tools, and the parts of a definition that an option may change.
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from orchestrator.benchmarks.field_texts import TEXTS
from orchestrator.benchmarks.spec import Spec
from orchestrator.loadtools.registry import TOOLS

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DEFS = "#/$defs/"
_REFERENCE = {"type": "string", "pattern": r"^\{[a-z][a-z0-9_]*\}$"}
_SIZE = {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*([KMGT]i?)?B\s*$"}
_CODINGS = {"type": "string", "description": "Codings separated by commas, or none."}
#: Parts that an option may change; fields that it leaves out keep the value of the definition.
_PARTS = ("Subject", "Service", "Load")


def build_definition_schema() -> Schema:
    """Return a schema that accepts every definition that `parse` accepts.

    It cannot check rules across several fields, such as placeholders without an axis.
    """
    schema = Spec.model_json_schema()
    root = {key: value for key, value in schema.items() if key != "$defs"}
    models: dict[str, Schema] = {"Spec": root, **schema["$defs"]}
    for each in _iterate_schemas(models):
        _clean_schema(each)
    for name, model in models.items():
        _describe(name, model)
    _complete_models(models)
    return {
        "$schema": DIALECT,
        **models.pop("Spec"),
        "title": "Pitwall benchmark definition",
        "$defs": dict(sorted(models.items())),
    }


def render_definition_schema() -> str:
    """Return the document as it is committed and served."""
    return json.dumps(build_definition_schema(), indent=2, ensure_ascii=False) + "\n"


def _iterate_schemas(value: object) -> Iterator[Schema]:
    """Yield every mapping in a schema, the outermost first."""
    if isinstance(value, dict):
        yield value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _iterate_schemas(part)


def _clean_schema(schema: Schema) -> None:
    """Remove titles generated from field names, and forbid other names in maps."""
    if isinstance(schema.get("title"), str):
        del schema["title"]
    if schema.get("default", ...) is None:
        del schema["default"]
    if "patternProperties" in schema:
        schema["additionalProperties"] = False
    for ours, theirs in (("ge", "minimum"), ("le", "maximum")):
        if isinstance(schema.get(ours), int):
            schema[theirs] = schema.pop(ours)


def _describe(name: str, model: Schema) -> None:
    model["description"] = " ".join(model.get("description", "").split())
    for field, text in TEXTS.get(name, {}).items():
        if field in model.get("properties", {}):
            model["properties"][field]["description"] = text


def _complete_models(models: dict[str, Schema]) -> None:
    load = models["Load"]["properties"]
    del load["tool"]["type"]
    load["tool"]["anyOf"] = [{"enum": list(TOOLS)}, dict(_REFERENCE)]
    load["compression"]["anyOf"].insert(1, dict(_CODINGS))
    models["Limits"]["properties"]["memory"]["anyOf"].insert(1, dict(_SIZE))
    option = models["Option"]["properties"]
    for name in _PARTS:
        _add_part(models, name)
    _refer(option["subject"], _DEFS + "SubjectPart")
    _refer(option["load"], _DEFS + "LoadPart")
    _refer(option["limits"], _DEFS + "RoleLimits")
    _refer(option["network"], _DEFS + "Network")
    option["services"]["additionalProperties"] = {"$ref": _DEFS + "ServicePart"}
    option["checks"]["anyOf"][0]["items"] = {"$ref": _DEFS + "Check"}
    option["prepare"]["anyOf"][0]["items"] = {"$ref": _DEFS + "PrepareStep"}


def _refer(field: Schema, target: str) -> None:
    description = field["description"]
    field.clear()
    field.update({"$ref": target, "description": description})


def _add_part(models: dict[str, Schema], name: str) -> None:
    """Add a version of the model, and of mappings in it, without required fields."""
    if f"{name}Part" in models:
        return
    part = models[f"{name}Part"] = deepcopy(models[name])
    part.pop("required", None)
    for field in part.get("properties", {}).values():
        for each in (field, *field.get("anyOf", ())):
            if (target := each.get("$ref", "")).startswith(_DEFS):
                inner = target.removeprefix(_DEFS)
                _add_part(models, inner)
                each["$ref"] = f"{target}Part"
