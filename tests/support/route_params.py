"""Every page and every operation of the API, with objects of team red in the address."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.urls import URLPattern, URLResolver, get_resolver, reverse

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Invitation, User
from orchestrator.accounts.selectors import load_member
from orchestrator.accounts.services import create_token
from orchestrator.api.v1 import api
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Project
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.sharing import SharedPage, create_share_link
from orchestrator.fleet.models import HardwareProfile
from orchestrator.fleet.services import add_credential
from orchestrator.forges.models import BenchmarkRequest, Connection
from orchestrator.histories.annotations import annotate
from orchestrator.regressions.change_points import store_baseline
from orchestrator.results.models import ChangePoint, Pin, Series
from orchestrator.retention.deletions import delete_project
from orchestrator.runs.models import Backfill, Job, Schedule
from tests.support.demo_team import REPORT, make_demo_team
from tests.support.factories import DEFINITION, Personas
from tests.support.fetches import fetch_now


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteParams:
    """`ids` by the name of a parameter in an address; `names`: texts only for team red."""

    personas: Personas
    carol: Member
    shas: list[str]
    ids: Mapping[str, object]
    names: tuple[str, ...]

    def page(self, name: str, parameters: list[str]) -> str:
        return reverse(name, args=[self._value(name, each) for each in parameters])

    def operation(self, path: str) -> str:
        known = {**self.ids, **OF_OPERATIONS, **OF_ONE.get(path, {})}
        return "/api/v1" + path.format(**known)

    def _value(self, page: str, parameter: str) -> object:
        known = {**self.ids, **OF_PAGES}
        return known.get(f"{page} {parameter}", known.get(f"{page.split('-')[0]} {parameter}",
                         known.get(parameter)))  # fmt: skip


#: An unknown id for bodies.
REPOSITORY = "https://127.0.0.1:1/none.git"
#: Values of parameters whose meaning depends on the address: by page, or its first word.
OF_PAGES = {
    "report slug": "connections", "project slug": "server", "catalogue slug": "server-overhead",
    "benchmark slug": "many", "benchmark project": "server", "trial-histogram kind": "ok",
    "trial-artifact name": "tool.json", "report ending": "csv", "audit ending": "csv",
    "badge project": "server", "badge slug": "long", "profile slug": "any",
    "case project": "server", "case slug": "many",
    "document name": "tutorial.md",
}  # fmt: skip
OF_OPERATIONS = {"project": "server", "benchmark": "many", "version": 1, "name": "connections"}
OF_ONE = {"/trials/{trial_id}/artifacts/{name}": {"name": "tool.json"}}


def make_route_params(folder: Path) -> RouteParams:
    demo_team = make_demo_team(folder)
    alice = demo_team.personas.alice
    other = create_project(
        member=alice, slug="other", name="Other", repository_url=str(folder / "repository")
    )
    fetch_now(other)
    carol = load_member(User.objects.get(username="carol"))
    series = Series.objects.get(pk=demo_team.ids["series"])
    commit = Commit.objects.get(sha=demo_team.ids["sha"])
    key = add_credential(member=alice, name="lab key")
    ids = {
        **{f"{name}_id": key for name, key in demo_team.ids.items()},
        "sha": demo_team.ids["sha"],
        "source_id": demo_team.ids["reference"],
        "annotation_id": annotate(member=alice, commit=commit, text="a secret note").pk,
        "baseline_id": store_baseline(member=alice, commit=commit, series=series, reason="x").pk,
        "change_id": ChangePoint.objects.order_by("pk")[0].pk,
        "pin_id": Pin.objects.get().pk,
        "backfill_id": Backfill.objects.get().pk,
        "schedule_id": Schedule.objects.get().pk,
        "token_id": create_token(member=carol, name="hers").token.pk,
        "invitation_id": Invitation.objects.get().pk,
        "secret": demo_team.ids["invitation"],
        "username": "bob",
        "case": Case.objects.filter(benchmark__slug="many")[0].key,
        "link_id": _shared(alice),
        "account-unlink link_id": 1,
        **_delete_some(alice, folder),
        "connection_id": Connection.objects.get().pk,
        "request_id": BenchmarkRequest.objects.get().pk,
        "job_id": Job.objects.filter(run=demo_team.ids["run"])[0].pk,
        "reference_id": demo_team.ids["reference"],
        "credential": key.pk,
        "credential_id": key.pk,
        "profile": HardwareProfile.objects.filter(team=alice.team)[0].slug,
    }
    return RouteParams(
        personas=demo_team.personas,
        carol=carol,
        shas=demo_team.shas,
        ids=ids,
        names=("alice", "rack-4", "a secret note", "dora@", demo_team.shas[0][:10]),
    )


def _delete_some(member: Member, folder: Path) -> dict[str, object]:
    """Return a deleted project, and the deleted benchmark of the demo team."""
    gone = create_project(
        member=member, slug="gone", name="Gone", repository_url=str(folder / "repository")
    )
    delete_project(member=member, slug=gone.slug)
    benchmark = Benchmark.with_deleted.get(slug="former")
    return {"project_id": gone.pk, "benchmark_id": benchmark.pk}


def _shared(member: Member) -> object:
    page = SharedPage(
        project=Project.objects.get(slug="server"),
        page="overview",
        parameters={},
        query="",
        title="x",
    )
    return create_share_link(member=member, shared=page, days=1).link.pk


@cache
def all_pages() -> dict[str, list[str]]:
    """Return the parameters of each page, by its name, from the URL resolver."""
    return dict(_pages(get_resolver().url_patterns))


def _pages(patterns: list[Any]) -> Iterator[tuple[str, list[str]]]:
    for each in patterns:
        if isinstance(each, URLResolver):
            if each.namespace != api.urls_namespace:
                yield from _pages(each.url_patterns)
        elif isinstance(each, URLPattern) and not str(each.pattern).startswith(("^api/", "api/")):
            yield each.name or f"(without a name) {each.pattern}", list(each.pattern.converters)


def question(route_params: RouteParams, name: str) -> tuple[str, str]:
    """Return the query and the smallest valid body of an operation.

    They name objects of team red wherever possible.
    """
    method, path = name.split()
    schema = _schema()
    operation = schema["paths"][path][method.lower()]
    known = _build_known_values(route_params, name)
    query = {
        each["name"]: known.get(each["name"], "x")
        for each in operation.get("parameters", ())
        if each["in"] == "query"
        and (each["required"] or path.startswith(("/comparisons", "/latency", "/results")))
    }
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    body = _least(content.get("schema", {}), schema["components"]["schemas"], known, "")
    return urlencode({key: value for key, value in query.items() if value != "x"}), json.dumps(body)


@cache
def _schema() -> dict[str, Any]:
    return dict(api.get_openapi_schema(path_prefix=""))


def _build_known_values(route_params: RouteParams, name: str) -> dict[str, Any]:
    first, second, *_ = route_params.shas
    return {
        "benchmark": "many", "project": "server", "commit": first, "baseline": first,
        "contender": second, "case": route_params.ids["case"], "host": "here", "percentiles": "50",
        "suite": "http-clients", "cron": "0 3 * * *", "profile": route_params.ids["profile"],
        "credential": str(route_params.ids["credential"]), "repository_url": REPOSITORY,
        "page": f"/runs/{route_params.ids['run_id']}/",
        "metric": "requests.rate", "scopes": ["read"], "hosts": ["here"], "contenders": [second],
        "repository": "ada/server", "target": "https://hooks.example.org/x",
        "source": REPORT if "/reports" in name else DEFINITION,
        **({"name": "another"} if "/reports" in name else {}),
    }  # fmt: skip


def _least(schema: Any, parts: Any, known: Mapping[str, Any], name: str) -> Any:
    """Return the smallest value of a schema; a field with a known name gets the known value."""
    if "$ref" in schema:
        return _least(parts[schema["$ref"].rsplit("/", 1)[-1]], parts, known, name)
    if name in known:
        return known[name]
    if options := schema.get("anyOf"):
        return _least(options[0], parts, known, name)
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        fields = schema.get("properties", {})
        wanted = {*schema.get("required", ()), *(known if name == "" else ())} & {*fields}
        return {each: _least(fields[each], parts, known, each) for each in sorted(wanted)}
    if schema.get("type") == "array":
        return [_least(schema["items"], parts, known, name)] if schema.get("minItems") else []
    by_format = {"date-time": "2999-01-01T00:00:00Z", "date": "2999-01-01"}
    by_type = {"integer": schema.get("minimum", 1), "number": 1, "boolean": False}
    by_type |= {"string": by_format.get(schema.get("format", ""), "x")}
    return by_type.get(schema.get("type", ""), None)


def all_operations() -> list[str]:
    """Return operations such as `GET /runs/{run_id}` from the OpenAPI document."""
    schema = _schema()
    return [f"{method.upper()} {path}" for path, ways in schema["paths"].items() for method in ways]
