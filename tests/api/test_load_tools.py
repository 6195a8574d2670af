"""The load tools, as the validator and the pages know them."""

from statistics import median

import pytest

from orchestrator.fleet.models import Host, HostSnapshot
from orchestrator.loadtools.registry import TOOLS
from orchestrator.measurements.readings import load_values
from orchestrator.results.models import Reading
from orchestrator.runs.models import Trial
from tests.support.factories import make_known

FACTS = {"tools": {"oha": {"path": "/opt/oha", "version": "1.2.0"}, "wrk": None}}


def test_every_load_tool_is_listed_with_its_description(alice):
    shown = {each["name"]: each for each in alice.get("load-tools").json()["load_tools"]}
    assert list(shown) == list(TOOLS)
    for name, tool in TOOLS.items():
        entry, sheet = shown[name], tool.sheet
        assert {(each["protocol"], each["tls"]) for each in entry["protocols"]} == sheet.protocols
        assert (entry["open_loop"], entry["distribution"]) == (sheet.open_loop, sheet.distribution)
        assert (entry["reports_errors"], entry["bytes_out"]) == (sheet.errors, sheet.bytes_out)
        assert entry["caveats"] == list(sheet.caveats)
        assert entry["errors"] == []


def test_only_hosts_of_the_team_are_listed(world, alice, mallory):
    HostSnapshot.objects.create(host=Host.objects.get(), facts=FACTS, fingerprint="f" * 64)
    shown = {each["name"]: each["hosts"] for each in alice.get("load-tools").json()["load_tools"]}
    assert shown["oha"] == [
        {"host": "here", "path": "/opt/oha", "version": "1.2.0", "features": [], "fit": False,
         "reason": ""}
    ]  # fmt: skip
    assert shown["wrk"] == []
    assert all(each["hosts"] == [] for each in mallory.get("load-tools").json()["load_tools"])


def test_the_error_of_a_load_tool_is_reported(world, alice):
    make_known(world.measure_run(1000, 800), {"latency.p50": 0.01})
    Trial.objects.update(provenance={"tool": {"name": "oha", "version": "1.16.0"}})
    shown = {each["name"]: each["errors"] for each in alice.get("load-tools").json()["load_tools"]}
    ((version, (error,)),) = [(each["version"], each["errors"]) for each in shown["oha"]]
    assert (version, error["metric"], error["trials"]) == ("1.16.0", "latency.p50", 10)
    trials = Reading.objects.values_list("pk", flat=True)
    measured = [each["latency.p50"] for each in load_values(trials).values()]
    assert error["median"] == pytest.approx(median(measured) / 0.01 - 1)
    assert error["low"] == pytest.approx(min(measured) / 0.01 - 1)
    assert shown["wrk"] == []
