"""The API documentation: an index, and a page for each group with examples that work."""

import json
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from cli.pitwall.arguments import build_parser
from orchestrator.accounts.services import create_token
from orchestrator.api.operation_examples import COMMANDS
from orchestrator.runs.models import Run
from tests.support.engine import ROOT
from tests.support.html_pages import element, elements, get_text, parse_html, values
from tests.support.programs import program
from tests.support.world import World

INDEX = "/api/v1/docs"
MOST_BYTES = 150_000
#: test_openapi.py checks that the file is up to date.
SCHEMA = json.loads((ROOT / "docs" / "api" / "openapi.json").read_text())
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in SCHEMA["paths"].items()
    for method, operation in methods.items()
}
GROUPS = sorted({operation["tags"][0] for *_, operation in OPERATIONS.values()})
PAGES = [INDEX, *(f"{INDEX}/{group}" for group in GROUPS)]


@cache
def read_page(address: str) -> Any:
    """The response. The pages depend on no row, so all tests read the same ones."""
    return Client().get(address)


@cache
def parse_page(address: str) -> Any:
    return parse_html(read_page(address))


@pytest.fixture
def pages(db: None) -> dict[str, Any]:
    return {address: parse_page(address) for address in PAGES}


def test_the_index_links_every_operation_on_the_page_of_its_group(pages: dict[str, Any]) -> None:
    links = set(values(pages[INDEX], "main a[href*='#']", "href"))
    for name, (_, path, operation) in OPERATIONS.items():
        address = f"{INDEX}/{operation['tags'][0]}"
        assert f"{address}#{name}" in links
        assert path in get_text(element(pages[address], f"section[id='{name}']"))


def test_every_operation_shows_its_parameters(pages: dict[str, Any]) -> None:
    for name, (_, _, operation) in OPERATIONS.items():
        page = pages[f"{INDEX}/{operation['tags'][0]}"]
        section = element(page, f"section[id='{name}']")
        shown = {get_text(each) for each in elements(section, "tbody th code")}
        assert {each["name"] for each in operation["parameters"]} <= shown


def test_every_schema_is_on_each_page_that_uses_it(pages: dict[str, Any]) -> None:
    shown = set()
    for address in PAGES[1:]:
        ids = set(values(pages[address], "[id]", "id"))
        links = {each.removeprefix("#") for each in values(pages[address], "a[href^='#']", "href")}
        assert links - {"content"} <= ids
        shown |= {each.removeprefix("schema-") for each in ids if each.startswith("schema-")}
    named = {each for each in shown if not each.endswith("-title")}
    used = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(SCHEMA["paths"]))
    assert set(used) <= named <= set(SCHEMA["components"]["schemas"])


@pytest.mark.parametrize("address", PAGES)
def test_every_page_is_small_and_needs_no_script(db: None, address: str) -> None:
    answer = read_page(address)
    assert answer.status_code == 200
    assert len(answer.content) < MOST_BYTES
    page = parse_page(address)
    assert elements(page, "script:not([src]), style, [style]") == []
    attributes = {name for tag in page.find_all(True) for name in tag.attrs}
    assert [name for name in attributes if name.startswith("on")] == []
    addresses = values(page, "[src]", "src") + values(page, "[href]", "href")
    assert [each for each in addresses if urlsplit(each).netloc] == []


def test_an_unknown_group_is_not_found(db: None) -> None:
    answer = Client().get(f"{INDEX}/none")
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert Client().post(f"{INDEX}/runs").status_code == 405


def test_every_operation_has_examples_of_its_request(pages: dict[str, Any]) -> None:
    for name, (method, path, operation) in OPERATIONS.items():
        section = element(pages[f"{INDEX}/{operation['tags'][0]}"], f"section[id='{name}']")
        curl = shlex.split(get_text(element(section, "[data-example=curl]")).replace("\\ ", ""))
        address = re.sub(r"\{(\w+)\}", lambda match: f"${match[1].upper()}", path)
        assert curl[-1].partition("?")[0] == f"$PITWALL_URL{address}"
        assert ("-d" in curl or "-F" in curl) == operation.get("requestBody", {}).get(
            "required", False
        )
        if "-d" in curl:
            json.loads(curl[curl.index("-d") + 1])
        source = element(section, "[data-example=python]").get_text()
        compile(source, name, "exec")
        assert f"requests.{method.lower()}(" in source


def test_commands_are_those_of_the_command_line() -> None:
    parser = build_parser()
    known = {f"{method} {path.removeprefix('/api/v1')}" for method, path, _ in OPERATIONS.values()}
    assert set(COMMANDS) <= known
    run = "01a2062d-dfcc-7011-98bd-9f660c108414"
    for command in COMMANDS.values():
        words = [
            word.replace("$RUN_ID", run).replace("$VERSION", "3") for word in shlex.split(command)
        ]
        assert words[0] == "pitwall"
        parser.parse_args(words[1:])


def _read_example(client: Client, name: str, kind: str) -> str:
    page = client.get(f"{INDEX}/{OPERATIONS[name][2]['tags'][0]}")
    return element(element(page, f"section[id='{name}']"), f"[data-example={kind}]").get_text()


def _build_environment(world: World, live_server: Any) -> dict[str, str]:
    token = create_token(member=world.alice, name="ci", scopes=["read", "run"]).secret
    return {**os.environ, "PITWALL_URL": live_server.url, "PITWALL_TOKEN": token}


@pytest.mark.parametrize("kind", ["curl", "python"])
def test_the_examples_of_a_run_work(
    transactional_db: None, world: World, live_server: Any, kind: str
) -> None:
    environment = _build_environment(world, live_server)
    if kind == "curl":
        program("curl")
    command = ["sh", "-c"] if kind == "curl" else [sys.executable, "-c"]
    example = _read_example(Client(), "start_run", kind)
    example = example.replace("my-branch", world.shas[2]).replace("lab-1", "here")
    done = subprocess.run(
        [*command, example], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    run = Run.objects.get()
    assert str(run.pk) in done.stdout
    listed = subprocess.run(
        [*command, _read_example(Client(), "list_runs", kind)],
        env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert str(run.pk) in listed.stdout, listed.stderr
