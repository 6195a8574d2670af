"""Hooks for schemathesis: use existing names, and contact no other machine.

schemathesis imports it in a separate environment, without Pitwall's packages.
"""

import ast
import gc
import json
import os
import random
from pathlib import Path
from typing import Any

import schemathesis
from schemathesis import GenerationMode
from schemathesis.core.parameters import ParameterLocation

KNOWN: dict[str, Any] = json.loads(Path(os.environ["PITWALL_FUZZ_KNOWN"]).read_text())
#: How often an existing value replaces a generated one.
SHARE = 0.7
#: Do not wait for long polls.
LONGEST_WAIT_S = 0.05
MOST_VALUES, MOST_CHARS = 5, 500
#: Pitwall sends requests to these addresses, so only this machine may be named.
ADDRESSES = {"address": "127.0.0.1", "repository_url": "https://127.0.0.1:9/nothing.git"}
chance = random.Random(1)


def _parse_undisturbed(*words: Any, **options: Any) -> ast.AST:
    """Work around a bug of Python 3.11's parser.

    It loses count of its depth if the garbage collector runs Python code while it parses a large
    file, as hypothesis does for its messages.
    """
    gc.disable()
    try:
        return _parse(*words, **options)
    finally:
        gc.enable()


_parse, ast.parse = ast.parse, _parse_undisturbed  # type: ignore[assignment]


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
    if isinstance(case.path_parameters, dict):
        _keep_own(case.path_parameters)
    if isinstance(case.query, dict):
        _shorten(case.query)


def _is_positive(case: Any, place: ParameterLocation) -> bool:
    components = getattr(case.meta, "components", {}) if case.meta else {}
    component = components.get(place)
    return component is not None and component.mode is GenerationMode.POSITIVE


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


def _keep_own(values: dict[str, Any]) -> None:
    """Keep the own token and membership, without which all further requests would be refused."""
    for name, own in KNOWN["own"].items():
        if str(values.get(name)).lower() == own:
            values[name] = "bob" if name == "username" else "00000000-0000-0000-0000-000000000000"


def _shorten(query: dict[str, Any]) -> None:
    """Shorten addresses, because the server in front refuses long ones with its own message."""
    for name, value in query.items():
        if isinstance(value, list):
            query[name] = value[:MOST_VALUES]
        elif isinstance(value, str):
            query[name] = value[:MOST_CHARS]
    wait = str(query.get("wait", ""))
    if wait.replace(".", "", 1).isdecimal() and LONGEST_WAIT_S < float(wait) <= 60:
        query["wait"] = LONGEST_WAIT_S
