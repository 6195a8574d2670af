"""The navigation: seven entries in two groups, and the lists of each as tabs."""

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.benchmarks.models import Project
from orchestrator.benchmarks.sharing import set_public
from tests.support.html_pages import element, elements, get_text, values
from tests.support.world import World

TABS = {
    "runs": ["Runs", "Queue", "Schedules", "Backfills", "Imports"],
    "queue": ["Runs", "Queue", "Schedules", "Backfills", "Imports"],
    "schedules": ["Runs", "Queue", "Schedules", "Backfills", "Imports"],
    "imports": ["Runs", "Queue", "Schedules", "Backfills", "Imports"],
    "reports": ["Commits", "Reports", "Reference results"],
    "references": ["Commits", "Reports", "Reference results"],
    "catalogue": ["Benchmarks", "Catalogue", "Load tools"],
    "load-tools": ["Benchmarks", "Catalogue", "Load tools"],
    "profiles": ["Hosts", "Hardware profiles"],
}
SECTIONS = {
    "queue": "Runs",
    "schedules": "Runs",
    "imports": "Runs",
    "run-new": "Runs",
    "reports": "Compare",
    "references": "Compare",
    "history": "History",
    "project-new": "Benchmarks",
    "load-tools": "Benchmarks",
    "profiles": "Hosts",
    "channels": "Settings",
}


def _groups(client: Client, address: str) -> list[list[str]]:
    lists = elements(client.get(address), "header nav ul")
    return [[get_text(each).removeprefix("⚙ ") for each in elements(one, "a")] for one in lists]


def _tabs(client: Client, name: str) -> list[str]:
    return [get_text(each) for each in elements(client.get(reverse(name)), "main nav.tabs a")]


def test_there_are_seven_entries_in_two_groups(alice: Client) -> None:
    assert _groups(alice, "/") == [
        ["Overview", "Runs", "Compare", "History", "Alerts"],
        ["Benchmarks", "Hosts"],
        ["Settings", "Help"],
    ]


@pytest.mark.parametrize(("page", "section"), SECTIONS.items())
def test_every_page_belongs_to_one_section(alice: Client, page: str, section: str) -> None:
    current = element(alice.get(reverse(page)), "header nav [aria-current]")
    assert get_text(current).removeprefix("⚙ ") == section


@pytest.mark.parametrize(("page", "titles"), TABS.items())
def test_the_lists_of_a_section_are_its_tabs(alice: Client, page: str, titles: list[str]) -> None:
    assert _tabs(alice, page) == titles
    links = values(alice.get(reverse(page)), "main nav.tabs a[aria-current]", "href")
    assert links == [reverse(page)]


def test_pages_below_a_list_have_no_tabs(world: World, alice: Client) -> None:
    for address in ("/", reverse("run-new"), reverse("run", args=[world.run.pk])):
        assert elements(alice.get(address), "main nav.tabs") == []


def test_only_maintainers_have_the_audit_log_as_a_tab(alice: Client, bob: Client) -> None:
    assert "Audit log" in _tabs(alice, "members")
    assert "Members" in _tabs(bob, "members")
    assert "Audit log" not in _tabs(bob, "members")


def test_visitors_have_the_entries_that_are_open_to_them(world: World, client: Client) -> None:
    set_public(member=world.alice, project=Project.objects.get(), public=True)
    place = "/public/red/server/"
    expected = [["Overview", "Runs", "Compare", "History", "Help"]]
    assert _groups(client, place) == expected
    reports = client.get(f"{place}reports/")
    assert values(reports, "main nav.tabs a", "href") == [f"{place}compare/", f"{place}reports/"]
    assert values(reports, "header nav a", "href")[-1] == "/docs/"
