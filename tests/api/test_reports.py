"""Reports through the API: saved, shown in each form, changed and deleted."""

import csv
import io

import pytest

SOURCE = """\
version: 1
title: How fast
benchmark: hello
tables:
  - rows: [connections, commit]
    columns: [{metric: requests.rate, title: Rate}, {metric: latency.p12, unit: ms}]
    sort: Rate
"""


@pytest.fixture
def run(world):
    return world.measure_run(1000, 800)


@pytest.fixture
def saved(alice, run):
    answer = alice.post("reports", {"name": "fast", "source": SOURCE})
    assert answer.status_code == 201
    return answer.json()


def test_a_report_is_saved_and_listed(alice, saved):
    assert saved["source"] == SOURCE
    assert saved["web_url"].endswith("/reports/fast/")
    assert [each["name"] for each in alice.get("reports").json()["reports"]] == ["fast"]
    assert alice.get("reports/fast/source").json() == saved
    again = alice.post("reports", {"name": "fast", "source": SOURCE})
    assert again.status_code == 409


def test_a_report_of_three_runs_has_values_with_intervals(alice, world, saved):
    first = alice.get("reports/fast").json()["tables"][0]["rows"][0]["cells"][0]
    assert (first["low"], first["high"], first["runs"], first["trials"]) == (None, None, 1, 5)
    for level in (0.99, 1.01):
        world.measure_run(1000 * level, 800 * level)
    (table,) = alice.get("reports/fast").json()["tables"]
    (row,) = table["rows"]
    assert row["heads"] == ["4", world.shas[1][:10]]
    assert row["ranks"] == [1, 1]
    rate, p12 = row["cells"]
    assert rate["low"] < rate["value"] < rate["high"]
    assert rate["value"] == pytest.approx(800, rel=0.01)
    assert (rate["trials"], rate["runs"], rate["unit"], p12["unit"]) == (15, 3, "1/s", "ms")
    assert table["columns"][1]["title"] == "Latency p12"
    provenance = alice.get("reports/fast").json()["provenance"]
    assert {fact["title"] for fact in provenance["facts"]} >= {"Definition", "Commit", "Trials"}
    assert [host["name"] for host in provenance["hosts"]] == ["here"]


def test_a_report_shows_the_requested_commit(alice, world, run, saved):
    both = alice.get("reports/fast", commit="all").json()
    assert len(both["tables"][0]["rows"]) == 2
    assert alice.get("reports/fast", commit=world.shas[0][:10]).json()["commits"] == [world.shas[0]]
    assert alice.get("reports/fast", host="nowhere").status_code == 404
    assert len(alice.get("reports/fast", run=str(run.pk)).json()["tables"][0]["rows"]) == 2
    wrong = alice.get("reports/fast", cases="colour == 1")
    assert (wrong.status_code, wrong.json()["field"]) == (422, "cases")


def test_a_report_is_exported_as_markdown_and_csv(alice, saved):
    text = alice.get("reports/fast/markdown")
    assert text.headers["Content-Type"].startswith("text/markdown")
    assert text.content.decode().startswith("# How fast")
    rows = list(csv.reader(io.StringIO(alice.get("reports/fast/csv").content.decode())))
    (table,) = alice.get("reports/fast").json()["tables"]
    assert rows[1][:2] == ["1", "1"]
    assert float(rows[1][4]) == table["rows"][0]["cells"][0]["value"]


def test_a_report_is_rendered_without_saving(alice, run):
    shown = alice.post("reports/preview", {"source": SOURCE}).json()
    assert shown["title"] == "How fast"
    wrong = alice.post("reports/preview", {"source": SOURCE.replace("latency.p12", "latency.q")})
    assert (wrong.status_code, wrong.json()["field"]) == (422, "tables[0].columns[1].metric")
    assert alice.get("reports").json()["reports"] == []


def test_a_report_is_changed_and_deleted(alice, saved):
    changed = alice.put("reports/fast", {"source": SOURCE.replace("How", "So")})
    assert (changed.json()["name"], changed.json()["title"]) == ("fast", "So fast")
    renamed = alice.put("reports/fast", {"name": "faster", "source": SOURCE})
    assert renamed.json()["name"] == "faster"
    assert alice.get("reports/fast").status_code == 404
    assert alice.delete("reports/faster").status_code == 204
    assert alice.get("reports").json()["reports"] == []


def test_a_maintainer_changes_what_visitors_see(alice, bob, saved):
    assert saved["visibility"] == {"hardware": False, "published": False}
    body = {"hardware": True, "published": False}
    assert bob.put("reports/fast/visibility", body).status_code == 403
    assert alice.put("reports/fast/visibility", body).json()["visibility"] == body
    assert alice.get("reports/fast/source").json()["visibility"] == body
    assert alice.put("reports/fast/visibility", {"hardware": True}).status_code == 422
    assert alice.put("reports/none/visibility", body).status_code == 404


def test_a_viewer_reads_reports_and_a_stranger_sees_none(bob, mallory, saved):
    assert bob.get("reports/fast").status_code == 200
    assert bob.post("reports", {"name": "x", "source": SOURCE}).status_code == 403
    assert bob.put("reports/fast", {"source": SOURCE}).status_code == 403
    assert bob.delete("reports/fast").status_code == 403
    assert mallory.get("reports").json()["reports"] == []
    for answer in (
        mallory.get("reports/fast"),
        mallory.get("reports/fast/csv"),
        mallory.put("reports/fast", {"source": SOURCE}),
        mallory.delete("reports/fast"),
        mallory.post("reports/preview", {"source": SOURCE}),
    ):
        assert answer.status_code == 404
