"""Everything that a visitor can request, and facts of hosts that no answer may contain.

That is every open page, below a public project and by shared links, with every parameter that its
view reads.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch
from urllib.parse import urlencode

from django.db.models import F
from django.http import QueryDict
from django.test import Client
from django.urls import get_resolver
from django.urls.resolvers import URLPattern, URLResolver

from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.sharing import SHAREABLE, SharedPage, create_share_link
from orchestrator.fleet.models import HardwareProfile, Host, HostChange, HostSnapshot
from orchestrator.reports.provenance import _FACTS
from orchestrator.runs.models import Job, Run, Trial
from tests.support.route_params import RouteParams, all_pages

PUBLIC = "/public/red/server"
#: Part of every text that only members may read.
SECRET = "membersonly"
#: A shared page, and the parts of its address other than the query.
_GIVEN: Mapping[str, Mapping[str, str]] = {
    "report": {"slug": "connections"},
    "badge-value": {"project": "server", "slug": "long"},
    "badge-verdict": {"project": "server", "slug": "long"},
}


@dataclass(slots=True)
class OpenPage:
    """`reads`: the names of parameters that its view asked for.

    `values`: useful values for each name; the first one is sent while another parameter is tried.
    """

    name: str
    path: str
    view: Any
    reads: set[str] = field(default_factory=set)
    values: dict[str, list[str]] = field(default_factory=dict)

    def usual(self) -> dict[str, str]:
        """Return a query with a useful result; it requests no file."""
        return {name: self.values[name][0] for name in _USUAL if self.values.get(name)}

    def address(self, **changes: str) -> str:
        return f"{self.path}?{urlencode({**self.usual(), **changes})}"

    def addresses(self) -> Iterator[str]:
        """Yield the page bare, with the usual query, and with each known value, each once."""
        changes = [
            {name: text} for name in sorted(self.reads) for text in self.values.get(name, ())
        ]
        yield from dict.fromkeys([self.path, self.address(), *(self.address(**e) for e in changes)])


_USUAL = ("benchmark", "baseline", "contender", "case_key", "host_id")


def visitor_site(route_params: RouteParams, *, each_format: bool = True) -> list[OpenPage]:
    """Return the pages open to visitors, at each of their places, with their parameters.

    `each_format`: whether the parameters of files are those of all formats, or of the first only.
    """
    views = dict(_views(get_resolver().url_patterns))
    names = [name for name, view in views.items() if getattr(view, "open_to_visitors", False)]
    values = _values(route_params)
    pages = [
        OpenPage(
            name=name,
            path=PUBLIC + path,
            view=views[name],
            values=_with_formats(views[name], values),
        )
        for name in names
        for path in _paths(route_params, name, views[name])
    ]
    for shared, parts in SHAREABLE.items():
        place = f"/shared/{_share(route_params, shared, values)}"
        pages += [
            OpenPage(name=f"shared {name}", path=place + path, view=views[name],
                     values=_with_formats(views[name], values))
            for name in sorted(parts)
            for path in _paths(route_params, name, views[name])
        ]  # fmt: skip
    client, learned = Client(raise_request_exception=False), dict[object, set[str]]()
    tried: set[tuple[str, str]] = set()
    for page in pages:
        if page.view not in learned:
            learned[page.view] = _parameters(client, page)
        # The paths of a name differ in the format of the file. A page and its files have two names.
        file = page.name, page.path.rpartition(".")[0] or page.path
        if each_format or file not in tried:
            page.reads = learned[page.view]
        tried.add(file)
    return pages


def front_pages(route_params: RouteParams) -> list[OpenPage]:
    """Return every other page that answers without a session, such as the login page."""
    client, views = Client(raise_request_exception=False), dict(_views(get_resolver().url_patterns))
    pages = []
    for name, parameters in all_pages().items():
        if name not in views:
            continue
        page = OpenPage(name=f"front {name}", path=route_params.page(name, parameters),
                        view=views[name])  # fmt: skip
        if not client.get(page.path).headers.get("Location", "").startswith("/login?next="):
            page.reads = _parameters(client, page)
            pages.append(page)
    return pages


def _parameters(client: Client, page: OpenPage) -> set[str]:
    """Return the parameters that its view reads.

    Each found one is sent once, which may reveal others.
    """
    parameters, sent = set[str](), set[str]()
    with reading(parameters):
        client.get(page.path)
        client.get(page.address())
        while new := parameters - sent:
            for name in sorted(new):
                client.get(page.address(**{name: page.values.get(name, ["1"])[0]}))
            sent |= new
    return parameters


@contextmanager
def reading(names: set[str]) -> Iterator[None]:
    """Add to `names` the parameters that are read from any query during the block."""
    first_get, first_list = QueryDict.__getitem__, QueryDict.getlist

    def getitem(self: QueryDict, key: str) -> Any:
        names.add(key)
        return first_get(self, key)

    def getlist(self: QueryDict, key: str, default: Any = None) -> Any:
        names.add(key)
        return first_list(self, key, default)

    def contains(self: QueryDict, key: object) -> bool:
        names.add(str(key))
        return dict.__contains__(self, key)

    with (
        patch.object(QueryDict, "__getitem__", getitem),
        patch.object(QueryDict, "getlist", getlist),
        patch.object(QueryDict, "__contains__", contains, create=True),
    ):
        yield


def _views(patterns: list[Any]) -> Iterator[tuple[str, Any]]:
    for each in patterns:
        if isinstance(each, URLResolver):
            yield from _views(each.url_patterns)
        elif isinstance(each, URLPattern) and each.name:
            yield each.name, each.callback


def _paths(route_params: RouteParams, name: str, view: Any) -> Iterator[str]:
    parameters = all_pages()[name]
    endings = _formats(view) if "ending" in parameters else [""]
    for ending in endings:
        path = route_params.page(name, parameters)
        yield path.rpartition(".")[0] + f".{ending}" if ending else path


def _formats(view: Any) -> list[str]:
    """Return the formats of the view's module: a page with files lists them in FORMATS."""
    return list(sys.modules[view.__module__].FORMATS)


def _with_formats(view: Any, values: Mapping[str, list[str]]) -> dict[str, list[str]]:
    module = sys.modules[view.__module__]
    return {**values, "format": list(getattr(module, "FORMATS", ["json"]))}


def _values(route_params: RouteParams) -> dict[str, list[str]]:
    shas, ids = route_params.shas, route_params.ids
    return {
        "benchmark": ["server/many", "server/hello", "server/long"],
        "baseline": [shas[0]],
        "contender": [shas[1]],
        "commit": [shas[0], "newest"],
        "case_key": [str(ids["case"])],
        "host_id": [ids["host_id"].hex],  # type: ignore[attr-defined]
        "case": [str(ids["case"])],
        "host": ["here"],
        "run": [str(ids["run_id"])],
        "metric": ["requests.rate", "latency.p99"],
        "published": ["rows", "columns"],
        "branch": ["main"],
        "load": ["1"],
        "panel": ["1"],
        "percentiles": ["50, 99"],
        "invalid": ["1"],
    }


def _share(route_params: RouteParams, page: str, values: Mapping[str, list[str]]) -> str:
    """Return the secret of a link to a page of the public project."""
    given = _GIVEN.get(page, {"run_id": str(route_params.ids["run_id"])} if page == "run" else {})
    query = {name: values[name][0] for name in ("benchmark", "baseline", "contender")}
    shared = SharedPage(
        project=Project.objects.get(slug="server"),
        page=page,
        parameters=given,
        query=urlencode(query) if page == "compare" else "",
        title=page,
    )
    return create_share_link(member=route_params.personas.alice, shared=shared, days=1).secret


def plant_secrets() -> None:
    """Put SECRET into facts and settings of hosts, messages, and other data for members."""
    facts: dict[str, Any] = {key: f"{SECRET}-{key}" for key in _FACTS}
    facts["memory_bytes"] = 2**36
    for group in ("languages", "programs", "tools"):
        facts[group] = {"python": f"{SECRET}-{group}"}
    for host in Host.objects.all():
        snapshot = HostSnapshot.objects.create(
            host=host, facts=facts, fingerprint=f"{SECRET}-print"
        )
        Job.objects.filter(host=host).update(snapshot=snapshot)
        HostChange.objects.create(
            host=host, snapshot=snapshot, at=snapshot.taken_at,
            changed={"kernel": [f"{SECRET}-before", f"{SECRET}-after"]},
        )  # fmt: skip
    Host.objects.update(
        address=f"{SECRET}.example", data_address=f"{SECRET}-data.example", login=SECRET,
        work_dir=SECRET, python=SECRET, host_key=SECRET, message=SECRET,
        tuning={"governor": SECRET}, tags=[SECRET],
    )  # fmt: skip
    HardwareProfile.objects.update(cpu_model=SECRET, os=SECRET, notes=SECRET)
    Run.objects.update(message=SECRET)
    Job.objects.update(message=SECRET)
    Project.objects.update(repository_url=f"https://bot:{SECRET}@git.example.org/x.git")
    for trial in Trial.objects.annotate(codes=F("reasons")):
        trial.reasons = [f"{str(each).partition(':')[0]}: {SECRET}" for each in trial.reasons]
        trial.message = SECRET
        trial.provenance = {
            **trial.provenance, "argv": [SECRET], "server_argv": [SECRET], "limits": SECRET,
            "hosts": {"target": SECRET}, "checks": [SECRET], "usage": {"a": SECRET},
        }  # fmt: skip
        trial.save(update_fields=["reasons", "message", "provenance"])
