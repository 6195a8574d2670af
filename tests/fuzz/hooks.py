"""What schemathesis is told: the names of things that are there, and to leave other machines alone.

Imported by schemathesis in an environment of its own, where nothing of Pitwall is installed.
"""

import ast
import inspect
import json
import os
import random
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis.internal import lambda_sources
from schemathesis import GenerationMode
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.coverage import _schema

KNOWN: dict[str, Any] = json.loads(Path(os.environ["PITWALL_FUZZ_KNOWN"]).read_text())
#: How often something known takes the place of something made up.
SHARE = 0.7
#: Nobody waits for a long poll here.
LONGEST_WAIT_S = 0.05
MOST_VALUES, MOST_CHARS = 5, 500
#: Sent to wherever they say: nothing but this machine may be asked.
ADDRESSES = {"address": "127.0.0.1", "repository_url": "https://127.0.0.1:9/nothing.git"}
chance = random.Random(1)


# Python 3.11 loses count where it parses a large file deep in a thread ("AST constructor recursion
# depth mismatch"), as hypothesis does for its messages: here it has been parsed before.
_lines = tuple(inspect.findsource(_schema)[0])
lambda_sources.AST_LAMBDAS_CACHE[_lines] = lambda_sources.extract_all_lambdas(
    ast.parse("".join(_lines))
)


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    for place, values in (
        (ParameterLocation.PATH, case.path_parameters),
        (ParameterLocation.QUERY, case.query),
        (ParameterLocation.BODY, case.body),
    ):
        if isinstance(values, dict):
            if _is_positive(case, place):
                _know(values, always=place is ParameterLocation.PATH)
            _stay_here(values)
    if isinstance(case.query, dict):
        _shorten(case.query)


def _is_positive(case: Any, place: ParameterLocation) -> bool:
    components = getattr(case.meta, "components", {}) if case.meta else {}
    found = components.get(place)
    return found is not None and found.mode is GenerationMode.POSITIVE


def _know(values: dict[str, Any], *, always: bool) -> None:
    for name, value in values.items():
        known = KNOWN.get(name)
        if isinstance(value, str) and known and chance.random() < SHARE:
            values[name] = chance.choice(known)
        elif name == "hosts" and isinstance(value, list) and chance.random() < SHARE:
            values[name] = KNOWN["host"]
        elif always and name in ("version", "build_id", "pin_id") and known:
            values[name] = chance.choice(known)


def _stay_here(values: dict[str, Any]) -> None:
    for name, here in ADDRESSES.items():
        if isinstance(values.get(name), str):
            values[name] = here


def _shorten(query: dict[str, Any]) -> None:
    """Long addresses are refused by the server in front, in its own words."""
    for name, value in query.items():
        if isinstance(value, list):
            query[name] = value[:MOST_VALUES]
        elif isinstance(value, str):
            query[name] = value[:MOST_CHARS]
    wait = query.get("wait")
    if isinstance(wait, int | float) and LONGEST_WAIT_S < wait <= 60:
        query["wait"] = LONGEST_WAIT_S
