"""Examples of each operation for the API documentation: with curl, Python and the command line."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pprint import pformat
from typing import Any
from urllib.parse import urlencode

Json = dict[str, Any]

_JSON, _FORM = "application/json", "multipart/form-data"
_RUN = {"benchmark": "hello", "ref": "my-branch", "hosts": ["lab-1"]}
_DEFINITION = "version: 1\ntitle: Hello\n…"
#: Bodies that need more than their required fields.
_BODIES: Mapping[str, Json] = {
    "POST /hosts": {
        "name": "lab-2",
        "address": "192.0.2.17",
        "login": "bench",
        "credential": "lab key",
        "profile": "t490s",
    },
    "PUT /projects/{project}/secrets/{name}": {"value": "a password for tests"},
    "POST /runs": _RUN,
    "POST /runs/plan": _RUN,
    "POST /results": {
        "results": [
            {
                "id": "build-17-hello",
                "project": "server",
                "benchmark": "hello",
                "commit": "0123456789abcdef0123456789abcdef01234567",
                "host": "ci-7",
                "metrics": {"requests.rate": 8334.5, "latency.p99": 0.0042},
            }
        ]
    },
}
#: Values of parameters and fields by their name.
_VALUES: Mapping[str, object] = {
    "address": "192.0.2.17", "assignee": "ada", "baseline": "v1.4", "benchmark": "hello",
    "case": "connections=16", "commit": "0123456789abcdef", "contender": "my-branch",
    "credential": "lab key", "cron": "0 3 * * *", "events": ["alert.raised"],
    "fingerprint": "SHA256:…", "host": "lab-1", "host_key": "ssh-ed25519 AAAA…", "login": "bench",
    "metric": "requests.rate", "name": "nightly", "page": "/reports/connections/",
    "path": ".pitwall.yaml", "percentiles": "50,99", "profile": "t490s", "project": "server",
    "reason": "measured again by hand", "repository": "ada/server",
    "repository_url": "https://git.example.org/ada/server.git", "role": "member",
    "scopes": ["read"], "slug": "server", "source": _DEFINITION, "suite": "http-clients",
    "target": "https://ci.example.org/hooks/pitwall", "text": "new allocator",
    "token": "the token of the forge", "until": "2027-01-31T00:00:00Z",
}  # fmt: skip
_BY_TYPE: Mapping[str, object] = {
    "integer": 30, "number": 0.5, "boolean": True, "array": [], "object": {}, "string": "…",
}  # fmt: skip
#: Operations that the command line has a command for.
COMMANDS: Mapping[str, str] = {
    "POST /runs": "pitwall run --benchmark hello --hosts lab-1 --ref my-branch --wait",
    "GET /runs/{run_id}": "pitwall wait $RUN_ID",
    "GET /runs/{run_id}/trials": "pitwall export trials $RUN_ID",
    "GET /comparisons": "pitwall compare $RUN_ID",
    "GET /comparisons/csv": "pitwall compare $RUN_ID --format csv",
    "GET /comparisons/markdown": "pitwall compare $RUN_ID --format markdown",
    "GET /hosts": "pitwall hosts",
    "POST /results/files": "pitwall import results.jsonl",
    "GET /projects/{project}/proposal": "pitwall propose $PROJECT",
    "GET /reports/{name}": "pitwall export report $NAME --json",
    "GET /reports/{name}/csv": "pitwall export report $NAME",
    "GET /reports/{name}/markdown": "pitwall export report $NAME --format markdown",
    "GET /benchmarks/{project}/{benchmark}/definitions/{version}": (
        "pitwall export definition $PROJECT/$BENCHMARK --version $VERSION"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """`command` is empty if the command line has no command for the operation."""

    curl: str
    python: str
    command: str


def build_examples(
    method: str, path: str, operation: Json, schemas: Mapping[str, Json]
) -> Examples:
    """Return the examples, with all that is required. Ids and names are variables."""
    name = f"{method.upper()} {path.removeprefix('/api/v1')}"
    media, body = _build_body(name, operation, schemas)
    query = urlencode(dict(_list_query(operation)))
    return Examples(
        curl=_write_curl(method.upper(), f"{path}?{query}" if query else path, media, body),
        python=_write_python(method, f"{path}?{query}" if query else path, media, body, operation),
        command=COMMANDS.get(name, ""),
    )


def _list_query(operation: Json) -> Iterator[tuple[str, object]]:
    for each in operation["parameters"]:
        if each["in"] == "query" and each["required"]:
            yield each["name"], _build_value(each["schema"], {}, each["name"])


def _build_body(
    name: str, operation: Json, schemas: Mapping[str, Json]
) -> tuple[str, object | None]:
    """Return the media type and the body; the body is None if none is required."""
    given = operation.get("requestBody", {})
    media = next(iter(given.get("content", {})), "")
    if media != _JSON or not given.get("required"):
        return media if given.get("required") else "", None
    return media, _BODIES.get(name) or _build_value(given["content"][media]["schema"], schemas, "")


def _build_value(schema: Json, schemas: Mapping[str, Json], name: str) -> object:
    """Return an example: the known value of this name, or the simplest one of the schema."""
    if name in _VALUES:
        return _VALUES[name]
    if "$ref" in schema:
        return _build_value(schemas[schema["$ref"].rsplit("/", 1)[-1]], schemas, name)
    if options := schema.get("anyOf"):
        return _build_value(options[0], schemas, name)
    if values := schema.get("enum"):
        return values[0]
    if properties := schema.get("properties"):
        # A request that changes something names at least one field.
        wanted = schema.get("required") or list(properties)[:1]
        return {each: _build_value(properties[each], schemas, each) for each in wanted}
    return _BY_TYPE[schema.get("type", "string")]


def _write_curl(method: str, path: str, media: str, body: object | None) -> str:
    lines = ['curl -fsS -H "Authorization: Bearer $PITWALL_TOKEN"']
    if method != "GET" and not (method == "POST" and media):
        lines.append(f"-X {method}")
    if media == _FORM:
        lines.append("-F file=@results.jsonl")
    elif media:
        text = json.dumps(body, ensure_ascii=False)
        lines += ['-H "Content-Type: application/json"', f"-d '{text}'"]
    address = re.sub(r"\{(\w+)\}", lambda match: f"${match[1].upper()}", path)
    return " \\\n  ".join([*lines, f'"$PITWALL_URL{address}"'])


def _write_python(method: str, path: str, media: str, body: object | None, operation: Json) -> str:
    lines = [f"f\"{{os.environ['PITWALL_URL']}}{path}\",",
             "headers={\"Authorization\": f\"Bearer {os.environ['PITWALL_TOKEN']}\"},"]  # fmt: skip
    if media == _FORM:
        lines.append('files={"file": open("results.jsonl", "rb")},')
    elif media:
        text = pformat(body, width=72, sort_dicts=False).replace("\n", "\n     ")
        lines.append(f"json={text},")
    inner = "\n".join(lines).replace("\n", "\n    ")
    call = f"answer = requests.{method}(\n    {inner}\n)"
    return "\n".join(["import os", "import requests", "", call, "answer.raise_for_status()",
                      *_write_result(operation)])  # fmt: skip


def _write_result(operation: Json) -> list[str]:
    """Return the line that prints the answer; none for an answer without a body."""
    success = [each for status, each in operation["responses"].items() if status.startswith("2")]
    media = {name for each in success for name in each.get("content", {})}
    if not media:
        return []
    return ["print(answer.json())" if media == {_JSON} else "print(answer.text)"]
