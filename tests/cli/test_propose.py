"""`pitwall propose` prints a definition for the server in a repository."""

import json

import pytest
import yaml

from orchestrator.benchmarks.projects import create_project
from tests.support.engine import server
from tests.support.factories import make_repository
from tests.support.fetches import fetch_now

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_definition_is_proposed_with_its_reasons(pitwall, world, tmp_path, live_server):
    make_repository(tmp_path / "shop", [server()])
    project = create_project(
        member=world.alice, slug="shop", name="Shop", repository_url=str(tmp_path / "shop")
    )
    fetch_now(project)
    done = pitwall("propose", "shop", "--ref", "main")
    assert done.status == 0
    schema = f"# yaml-language-server: $schema={live_server.url}/schemas/definition.json\n"
    assert done.out.startswith(schema)
    definition = yaml.safe_load(done.out)
    assert (definition["title"], definition["subject"]["start"][1]) == ("Shop", "server.py")
    assert "subject.start: from server.py" in done.err
    assert "subject.ready.path: " in done.err

    printed = json.loads(pitwall("propose", "shop", "--json").out)
    assert printed["source"] in done.out


def test_a_repository_without_a_server_has_no_proposal(pitwall, world):
    done = pitwall("propose", "server")
    assert (done.status, done.out) == (2, "")
    assert "show no server" in done.err
    assert "no project nowhere" in pitwall("propose", "nowhere").err
