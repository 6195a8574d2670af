"""Reports: made by choosing dimensions, saved under a name, changed, exported, deleted."""

import csv
import io
import json

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.models import AuditEntry
from orchestrator.reports.models import SavedReport
from orchestrator.reports.saved_reports import save_report
from tests.support.factories import finish_run, make_local_host, make_run
from tests.support.html_pages import element, get_text, values
from tests.support.world import World

TEXT = """\
version: 1
title: How fast
benchmark: server/hello
tables:
  - title: Rates
    rows: [connections, commit]
    columns: [{metric: requests.rate, title: Rate}]
    sort: Rate
"""


@pytest.fixture
def saved(world: World) -> SavedReport:
    return save_report(member=world.alice, source=TEXT, slug="fast")


def fetch_page(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return answer.content.decode()


def test_reports_are_listed_and_shown(saved: SavedReport, bob: Client) -> None:
    assert "How fast" in fetch_page(bob, reverse("reports"))
    page = bob.get(reverse("report", args=["fast"]))
    text = get_text(page)
    assert "Rate (1/s)" in text
    assert "Provenance" in text
    assert "Delete" not in text
    assert "×6" in text
    assert "6 trials" in fetch_page(bob, values(page, "a.value", "href")[0])


def test_a_stranger_sees_no_report(saved: SavedReport, mallory: Client) -> None:
    assert "How fast" not in fetch_page(mallory, reverse("reports"))
    for name in ("report", "report-edit", "report-delete"):
        answer = mallory.post(reverse(name, args=["fast"]))
        assert answer.status_code == 404
    assert fetch_page(mallory, "/reports/fast.csv", 404)
    assert SavedReport.objects.get().slug == "fast"


def test_a_viewer_cannot_write_reports(saved: SavedReport, bob: Client) -> None:
    assert bob.post(reverse("report-save"), {"name": "x", "source": TEXT}).status_code == 403
    assert bob.post(reverse("report-edit", args=["fast"]), {"source": TEXT}).status_code == 403
    assert bob.post(reverse("report-delete", args=["fast"])).status_code == 403


@pytest.mark.parametrize("address", ["/reports/fast.csv", "/reports/fast/?format=csv"])
def test_a_report_is_exported_by_its_address(
    saved: SavedReport, alice: Client, address: str
) -> None:
    rows = list(csv.reader(io.StringIO(fetch_page(alice, address))))
    assert rows[0][:5] == ["best_rank", "worst_rank", "Connections", "Commit", "Rate (1/s)"]
    assert rows[1][:2] == ["1", "1"]
    assert float(rows[1][4]) == pytest.approx(850, rel=0.01)
    report = json.loads(fetch_page(alice, "/reports/fast.json?commit=all"))
    assert len(report["tables"][0]["rows"]) == 3
    assert fetch_page(alice, "/reports/fast.md").startswith("# How fast")
    fetch_page(alice, "/reports/fast.pdf", 404)


def test_the_address_of_a_report_selects_another_commit(
    saved: SavedReport, world: World, alice: Client
) -> None:
    page = fetch_page(alice, f"/reports/fast/?commit={world.shas[0][:10]}")
    assert "1\u202f000" in page
    assert world.shas[0][:10] in page
    assert "only <a" in fetch_page(alice, f"/reports/fast/?run={world.run.pk}")
    assert fetch_page(alice, "/reports/fast/?run=none", 404)
    wrong = fetch_page(alice, "/reports/fast/?cases=nothing+%3D%3D+1", 400)
    assert "there is no axis or label nothing" in wrong
    assert fetch_page(alice, "/reports/fast/?host=nowhere", 404)


def test_dimensions_are_selected_by_a_form(world: World, alice: Client) -> None:
    page = fetch_page(
        alice,
        "/reports/new?benchmark=server/hello&row=connections&across=commit"
        "&metric=latency.p12,requests.rate&commit=all&statistic=mean",
    )
    assert "latency.p12 (ms)" in page or "Latency p12 (ms)" in page
    assert page.count('class="report-chart"') == 1
    assert "geometric mean" in get_text(element(page, "table.pivot thead"))
    assert "Save report" in page
    usual = fetch_page(alice, "/reports/new")
    assert "Requests per second" in usual
    wrong = fetch_page(alice, "/reports/new?metric=nonsense", 422)
    assert "there is no metric nonsense" in wrong
    report = json.loads(fetch_page(alice, "/reports/new?row=commit&commit=all&format=json"))
    assert len(report["tables"][0]["rows"]) == 3


def test_the_form_compares_hosts_with_one_of_them(world: World, alice: Client) -> None:
    make_local_host(world.alice, "there")
    finish_run(make_run(world.alice, world.shas[:1], hosts=("there",)), [2000])
    url = f"/reports/new?row=host&metric=requests.rate&against=here&commit={world.shas[0]}"
    (table,) = json.loads(fetch_page(alice, f"{url}&format=json"))["tables"]
    changes = {row["heads"][0]: row["cells"][-1]["value"] for row in table["rows"]}
    assert table["columns"][-1]["title"].endswith("against here")
    assert changes["there"] == pytest.approx(100, rel=0.02)
    page = fetch_page(alice, url)
    assert "here" in values(page, "option[selected]")
    assert "compare different machines at different times" in page


def test_htmx_gets_only_the_form_and_the_table(world: World, alice: Client) -> None:
    answer = alice.get("/reports/new?row=connections", headers={"HX-Request": "true"})
    assert b"<form" in answer.content
    assert b"<html" not in answer.content


def test_the_selection_is_saved(world: World, alice: Client) -> None:
    page = alice.get("/reports/new?row=connections&best=on&relative=on")
    source = page.context["yaml"]
    answer = alice.post(reverse("report-save"), {"name": "mine", "source": source})
    assert answer.headers["Location"] == reverse("report", args=["mine"])
    assert "Requests per second" in fetch_page(alice, "/reports/mine/")
    assert AuditEntry.objects.filter(action="report.created", subject="mine").exists()


def test_the_text_of_a_report_is_changed_and_errors_are_reported(
    saved: SavedReport, alice: Client
) -> None:
    address = reverse("report-edit", args=["fast"])
    assert "How fast" in fetch_page(alice, address)
    wrong = alice.post(address, {"name": "fast", "source": TEXT.replace("Rate}", "R8}")})
    assert wrong.status_code == 422
    assert "tables[0].sort.column: there is no column" in wrong.content.decode()
    right = alice.post(
        address,
        {"name": "faster", "source": TEXT.replace("How fast", "Faster").replace("\n", "\r\n")},
    )
    assert right.headers["Location"] == reverse("report", args=["faster"])
    report = SavedReport.objects.get()
    assert (report.slug, report.title) == ("faster", "Faster")
    assert "\r" not in report.source


def test_names_of_reports_are_unique_and_valid(saved: SavedReport, alice: Client) -> None:
    for name, words in (("fast", "already"), ("Not A Name", "short name"), ("new", "short name")):
        answer = alice.post(reverse("report-save"), {"name": name, "source": TEXT})
        assert answer.status_code == 422
        assert words in answer.content.decode()
    assert SavedReport.objects.count() == 1


def test_a_report_is_deleted(saved: SavedReport, alice: Client) -> None:
    assert "Delete the report" in get_text(alice.get(reverse("report-delete", args=["fast"])))
    assert SavedReport.objects.exists()
    assert alice.post(reverse("report-delete", args=["fast"])).status_code == 302
    assert not SavedReport.objects.exists()
    assert AuditEntry.objects.filter(action="report.deleted", subject="fast").exists()


def test_a_visitor_logs_in_first(saved: SavedReport, client: Client) -> None:
    for address in ("/reports/", "/reports/new", "/reports/fast/", "/reports/fast.csv"):
        assert client.get(address).status_code == 302
