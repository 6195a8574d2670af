"""The page of load tools says what their sheets say, who has them, and how wrong they are."""

from django.test import Client
from django.urls import reverse

from cli.pitwall.units import format_change
from orchestrator.fleet.models import HostSnapshot
from orchestrator.loadtools.registry import TOOLS
from orchestrator.loadtools.sheets import build_tool_sheets
from orchestrator.measurements.readings import load_values
from orchestrator.runs.models import Run, Trial
from tests.support.factories import make_known
from tests.support.html_pages import elements, get_text, values
from tests.support.world import World

FACTS = {
    "tools": {
        "oha": {"path": "/opt/oha", "version": "1.16.0", "features": ["http3"]},
        "wrk": {"path": "/opt/wrk", "version": "3.0.0"},
        "h2load": {"path": "/opt/h2load", "version": None, "reason": "it did not answer in time"},
        "ghz": None,
    }
}


def sections(client: Client) -> dict[str, str]:
    """The text of each tool's section."""
    sections = elements(client.get(reverse("load-tools")), "section[id]")
    return {str(section["id"]): get_text(section) for section in sections}


def test_the_page_shows_the_whole_description_of_each_tool(world: World, alice: Client) -> None:
    shown = sections(alice)
    assert list(shown) == list(TOOLS)
    for sheet in build_tool_sheets():
        for what, how in sheet.lines:
            assert f"{what} {how}" in shown[sheet.name]
        assert all(" ".join(each.split()) in shown[sheet.name] for each in sheet.caveats)


def test_hosts_with_a_tool_are_shown(world: World, alice: Client, mallory: Client) -> None:
    HostSnapshot.objects.create(host=world.host, facts=FACTS, fingerprint="e" * 64)
    shown = sections(alice)

    assert "here /opt/oha 1.16.0 http3" in shown["oha"]
    assert "here /opt/wrk 3.0.0 ✕ too old" in shown["wrk"]
    assert "unknown version: it did not answer in time" in shown["h2load"]
    assert "No host of the team has reported it" in shown["ghz"]
    assert "/opt/oha" not in sections(mallory)["oha"]


def test_the_error_of_a_tool_is_shown(world: World, alice: Client, mallory: Client) -> None:
    assert "Not measured yet" in sections(alice)["oha"]
    make_known(Run.objects.get(pk=world.run.pk), {"latency.p50": 0.004})
    Trial.objects.update(provenance={"tool": {"name": "oha", "version": "1.16.0"}})
    shown = sections(alice)

    assert "Version 1.16.0: measured / known" in shown["oha"]
    trials = Trial.objects.filter(job__run=world.run).values_list("pk", flat=True)
    values = [each["latency.p50"] for each in load_values(trials).values()]
    errors = [format_change(value / 0.004 - 1) for value in (min(values), max(values))]
    assert f"{' to '.join(errors)} 18" in shown["oha"]
    assert "Not measured yet" in shown["wrk"]
    assert "Not measured yet" in sections(mallory)["oha"]


def test_a_trial_links_to_its_tool(world: World, alice: Client) -> None:
    trial = Trial.objects.filter(job__run=world.run)[0]
    page = alice.get(reverse("trial", args=[trial.pk]))
    assert f"{reverse('load-tools')}#oha" in values(page, "a[href]", "href")


def test_a_new_run_links_to_the_tools(world: World, alice: Client) -> None:
    page = alice.get(reverse("run-new"))
    assert reverse("load-tools") in values(page, "main a[href]", "href")
