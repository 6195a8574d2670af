"""The bundle of a report, the pictures, and measuring a report again."""

import io
import json
import zipfile

import pytest
from django.http import QueryDict
from django.test import Client, override_settings
from django.urls import reverse

from orchestrator.accounts.models import AuditEntry
from orchestrator.benchmarks.models import Benchmark
from orchestrator.reports import bundle
from orchestrator.reports.models import SavedReport
from orchestrator.reports.saved_reports import save_report
from orchestrator.results.models import Histogram
from orchestrator.runs.models import Trial
from orchestrator.stats.histogram import Histogram as Distribution
from tests.support.html_pages import get_text, values
from tests.support.world import World

TEXT = """\
version: 1
title: How fast
benchmark: server/hello
cases: connections == 4
prose: |
  ## Summary

  *Faster*, says <b>nobody</b>.
tables:
  - title: Rates
    rows: [connections]
    columns: [{metric: requests.rate, title: Rate}, {metric: latency.p99, title: p99}]
    charts: [{kind: bars}, {kind: bars, columns: [p99]}, {kind: heatmap}]
"""


@pytest.fixture
def saved(world: World) -> SavedReport:
    return save_report(member=world.alice, source=TEXT, slug="fast")


def unpack(client: Client, address: str = "/reports/fast.zip?commit=all") -> dict[str, bytes]:
    answer = client.get(address)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:
        assert archive.testzip() is None
        return {name.removeprefix("report/"): archive.read(name) for name in archive.namelist()}


def test_a_member_gets_the_report_with_its_evidence(
    saved: SavedReport, world: World, bob: Client
) -> None:
    files = unpack(bob)
    trials = Trial.objects.filter(job__run=world.run)
    assert set(files) >= {
        "index.html", "report.md", "report.csv", "report.json", "report.yaml", "charts/chart-1.svg",
        "definition-1.yaml", "hosts.json", "commands.jsonl", "rerun.sh",
    }  # fmt: skip
    page = files["index.html"].decode()
    assert "<script" not in page
    assert "<h2>Summary</h2>" in page
    assert "&lt;b&gt;nobody" in page
    assert "<svg" in page
    assert "(<charts/chart-1.svg>)" in files["report.md"].decode()
    assert files["definition-1.yaml"].decode() == world.run.definition.source
    commands = [json.loads(line) for line in files["commands.jsonl"].splitlines()]
    assert {each["trial"] for each in commands} == {str(trial.pk) for trial in trials}
    assert "here" in json.loads(files["hosts.json"]) or json.loads(files["hosts.json"]) == {}
    (trial, kind), *_ = Histogram.objects.values_list("trial_id", "kind")
    whole = Distribution.decode(files[f"histograms/{trial}-{kind}.hdr"])
    assert whole.total_count > 0


def test_the_bundle_is_bounded(
    saved: SavedReport, world: World, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "MAX_TRIALS", 2)
    monkeypatch.setattr(bundle, "MAX_HISTOGRAM_BYTES", 10)
    files = unpack(alice)
    assert len(files["commands.jsonl"].splitlines()) == 2
    assert "would exceed" in files["histograms/LEFT-OUT.txt"].decode()
    assert "of 2 of" in files["index.html"].decode()


def test_a_report_is_measured_again_through_the_form_of_a_run(
    saved: SavedReport, world: World, alice: Client, bob: Client
) -> None:
    page = alice.get("/reports/fast/?commit=all")
    (address,) = [each for each in values(page, "a.button", "href") if "/runs/new?" in each]
    query = QueryDict(address.partition("?")[2])
    assert query["benchmark"] == "server/hello"
    assert query["rounds"] == str(world.run.rounds)
    assert query.getlist("hosts") == ["here"]
    assert [query["baseline"], query["contender"], query["second_contender"]] == [
        commit.sha for commit in sorted(world.commits, key=lambda each: each.position)
    ]
    form = alice.get(address)
    assert query["contender"] in values(form, "input[name=contender]", "value")
    assert "Measure this again" not in get_text(bob.get("/reports/fast/"))


def test_pictures_are_files_that_run_nothing(saved: SavedReport, alice: Client) -> None:
    answer = alice.get("/reports/fast.chart-2.svg?commit=all")
    assert answer.headers["Content-Type"] == "image/svg+xml"
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert b"prefers-color-scheme" in answer.content
    assert alice.get("/reports/fast.chart-9.svg").status_code == 404
    with override_settings(BASE_URL="https://pitwall.example.org"):
        text = alice.get("/reports/fast.md?commit=all").content.decode()
    assert "](<https://pitwall.example.org/reports/fast.chart-1.svg?commit=all>)" in text
    preview = alice.get("/reports/new?row=commit&commit=all&format=chart-1.svg")
    assert preview.headers["Content-Type"] == "image/svg+xml"
    page = alice.get("/reports/fast/?commit=all")
    for address in values(page, ".report-chart a", "href"):
        assert alice.get(address).headers["Content-Type"] == "image/svg+xml"


def test_the_text_in_markdown_has_a_field_of_its_own(saved: SavedReport, alice: Client) -> None:
    address = reverse("report-edit", args=["fast"])
    form = alice.get(address)
    assert "Summary" not in form.context["form"]["source"].value()
    source = form.context["form"]["source"].value()
    hostile = "# Result\n\n[a](javascript:alert(1)) <script>x</script>"
    assert alice.post(address, {"source": source, "prose": hostile}).status_code == 302
    page = alice.get("/reports/fast/").content.decode()
    assert "<h2>Result</h2>" in page
    assert "<script>x" not in page
    assert 'href="javascript' not in page
    both = alice.post(address, {"source": f"{source}\nprose: twice\n", "prose": "once"})
    assert both.status_code == 422
    assert "prose: the YAML has a text as well" in both.content.decode()


def test_only_a_maintainer_changes_the_visibility(
    saved: SavedReport, world: World, alice: Client, bob: Client
) -> None:
    address = reverse("report-visibility", args=["fast"])
    assert "A maintainer of the team" in get_text(bob.get(address))
    assert bob.post(address, {"hardware": "on"}).status_code == 403
    assert alice.post(address, {"hardware": "on", "published": "on"}).status_code == 302
    saved.refresh_from_db()
    assert (saved.shows_hardware, saved.shows_published) == (True, True)
    assert AuditEntry.objects.filter(action="report.visibility_changed", subject="fast").exists()
    benchmark = Benchmark.objects.get()
    Benchmark.objects.filter(pk=benchmark.pk).update(slug="renamed")
    save_report(
        member=world.alice, source=TEXT.replace("server/hello", "server/renamed"), slug="fast",
        replace="fast",
    )  # fmt: skip
    saved.refresh_from_db()
    assert saved.shows_hardware  # The same benchmark under another name.
