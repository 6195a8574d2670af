"""No page, file, chart or badge shows visitors the data of members.

These are facts and settings of hosts, messages, addresses and the repository. All open addresses
are tried, with every parameter that they read.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.db import transaction
from django.test import Client, override_settings
from django.utils import timezone

from orchestrator.accounts.models import User
from orchestrator.reports.models import SavedReport
from orchestrator.web.reports import views
from tests.fuzz.visitors import add_unmeasured_branch, fuzz, read_table_checksums
from tests.support.route_params import RouteParams, make_route_params
from tests.support.visitor_site import (
    PUBLIC,
    SECRET,
    OpenPage,
    front_pages,
    plant_secrets,
    visitor_site,
)

pytestmark = pytest.mark.django_db

#: Each parameter of each page is tried at least once.
HOSTILE_REQUESTS = 270


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """`unmeasured`: texts that name a commit which nobody measured."""

    route_params: RouteParams
    unmeasured: tuple[str, ...]


@pytest.fixture(scope="module")
def filled(
    django_db_setup: None, django_db_blocker: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Filled]:
    folder = tmp_path_factory.mktemp("visitors")
    local = override_settings(ALLOW_LOCAL_REPOSITORIES=True, DATA_DIR=folder / "data")
    with django_db_blocker.unblock(), local, transaction.atomic():  # type: ignore[attr-defined]
        route_params = make_route_params(folder)
        unmeasured = add_unmeasured_branch(folder)
        plant_secrets()
        yield Filled(route_params=route_params, unmeasured=unmeasured)
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def route_params(filled: Filled) -> RouteParams:
    return filled.route_params


@pytest.fixture(scope="module")
def site(route_params: RouteParams) -> list[OpenPage]:
    """All files are made of the same data, so each parameter is tried with one format here, and
    with all of them by `make fuzz`."""
    return visitor_site(route_params, each_format=False)


def test_no_response_to_a_visitor_has_data_of_members(site: list[OpenPage]) -> None:
    client, answered, faults = Client(), set(), []
    for page in site:
        for address in page.addresses():
            answer = client.get(address)
            if SECRET in answer.content.decode(errors="replace"):
                faults.append(address)
            if answer.status_code == 200:
                answered.add(page.path)
    assert not faults, "\n".join(faults)
    closed = [page.path for page in site if page.path not in answered]
    assert not closed, closed


def test_members_see_the_planted_data(route_params: RouteParams, site: list[OpenPage]) -> None:
    """The test above looks for something that is really in the answers to members."""
    alice = Client()
    alice.force_login(route_params.personas.alice.user)
    for ending in views.FORMATS:
        text = alice.get(f"/reports/connections.{ending}").content.decode()
        assert (f"{SECRET}-kernel" in text) is (ending != "csv"), ending
    assert f"{SECRET}-kernel" in alice.get("/reports/connections/").content.decode()
    tried = {(page.name, name) for page in site for name in page.reads}
    assert tried >= {
        ("report", "format"), ("report", "commit"), ("compare", "format"), ("compare", "run"),
        ("trial", "load"), ("badge-value", "label"), ("history", "metric"), ("embed", "branch"),
        ("shared report", "format"), ("shared compare", "format"), ("shared run-trials", "invalid"),
    }  # fmt: skip


def test_a_report_shows_visitors_only_what_its_team_allows(filled: Filled) -> None:
    """In each format: the bundle and the pictures as well."""
    alice = Client()
    alice.force_login(filled.route_params.personas.alice.user)
    assert f"{SECRET}-kernel" in _read_formats(alice, "")["zip hosts.json"]
    saved = SavedReport.objects.filter(slug="connections")
    hidden = _read_formats(Client(), PUBLIC)
    assert not [name for name, text in hidden.items() if SECRET in text]
    assert {"zip rerun.sh", "zip hosts.json", "zip commands.jsonl", "zip report.yaml"}.isdisjoint(
        hidden
    )
    saved.update(shows_hardware=True, changed_at=timezone.now())
    shown = _read_formats(Client(), PUBLIC)
    assert set(shown) == set(hidden)
    with_kernel = {name for name, text in shown.items() if f"{SECRET}-kernel" in text}
    assert with_kernel == {
        "page",
        "md",
        "json",
        "zip index.html",
        "zip report.md",
        "zip report.json",
    }
    allowed = re.compile(
        f"{SECRET}-(kernel|cpu_model|cores|threads|os_name|os_version|virtualisation)"
    )
    assert not [name for name, text in shown.items() if SECRET in allowed.sub("", text)]
    saved.update(shows_hardware=False, changed_at=timezone.now())


def _read_formats(client: Client, place: str) -> dict[str, str]:
    """Return the text of the page, of each file, and of each file in the bundle."""
    base = f"{place}/reports/connections"
    addresses = {"page": f"{base}/", "svg": f"{base}.chart-1.svg"}
    addresses |= {ending: f"{base}.{ending}" for ending in views.FORMATS}
    texts = {name: client.get(address).content.decode() for name, address in addresses.items()}
    content = b"".join(client.get(f"{base}.zip").streaming_content)  # type: ignore[attr-defined]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            text = archive.read(name).decode(errors="replace")
            texts[f"zip {name.removeprefix('report/')}"] = text
    return texts


def test_no_hostile_request_fails_leaks_or_changes_anything(
    filled: Filled, site: list[OpenPage]
) -> None:
    """The short form of `make fuzz`, which sends far more of them."""
    pages = [*site, *front_pages(filled.route_params)]
    front = {page.name for page in pages[len(site) :]}
    assert front >= {"front login", "front invitation", "front setup", "front forge-hook"}
    seen = fuzz(pages, filled.unmeasured, HOSTILE_REQUESTS, seed=1)
    assert seen.faults == []
    assert seen.requests == HOSTILE_REQUESTS
    assert 50 < seen.parameters <= HOSTILE_REQUESTS
    assert seen.statuses[200] > 20


def test_a_change_of_any_row_is_detected() -> None:
    before = read_table_checksums()
    User.objects.create_user(username="zoe")
    after = read_table_checksums()
    assert [name for name in after if after[name] != before[name]] == ["accounts_user"]
