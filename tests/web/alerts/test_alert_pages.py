"""Alerts in the browser: the list, one of them, and what is done about it."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.alerts import alert_rules
from orchestrator.alerts.models import Alert
from orchestrator.benchmarks.models import Project
from orchestrator.core.clock import utc_now
from orchestrator.regressions import bisections, confirmations
from orchestrator.results.models import ChangePoint, Point
from orchestrator.runs.models import Run
from tests.support.commit_lines import Line, make_line
from tests.support.factories import Personas
from tests.support.html_pages import element, elements, get_text, values


@pytest.fixture
def line(personas: Personas, tmp_path: Path) -> Line:
    return make_line(personas.alice, tmp_path / "origin", cases=2)


def rates(line: Line) -> dict[str, float]:
    return {c.sha: 920.0 if place >= 26 else 1000.0 for place, c in enumerate(line.commits)}


@pytest.fixture
def alert(line: Line) -> Alert:
    """Two cases are 8 % slower from commit 26 on, of which every fourth was measured."""
    for case in (0, 1):
        line.step(until=41, at=26, change=-0.08, every=4, case=case, seed=case)
    line.detect()
    confirmations.advance_confirmations(utc_now())
    line.answer_confirmation_runs(rates(line))
    confirmations.advance_confirmations(utc_now())
    alert_rules.apply_alert_rules(utc_now())
    return Alert.objects.get()


def text(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200
    return response.content.decode()


def test_an_empty_list_explains_when_alerts_are_raised(alice: Client) -> None:
    page = text(alice, reverse("alerts"))
    assert "No alert yet" in page
    assert reverse("schedules") in values(page, "main a", "href")
    assert elements(page, ".count") == []


def test_the_list_shows_metric_place_and_commit(line: Line, alert: Alert, alice: Client) -> None:
    page = text(alice, reverse("alerts"))
    assert "Hello: Requests per second" in page
    assert "−8.0 %" in page
    assert "confirmed by a confirmation run" in page
    assert "and 1 more" in page
    assert f"between {line.commits[24].short_sha} and {line.commits[28].short_sha}" in page
    assert "1 open" in map(get_text, elements(page, "span.count"))
    assert reverse("alert", args=[alert.pk]) in page


def test_an_alert_links_to_history_confirmation_run_and_bisection(
    line: Line, alert: Alert, alice: Client
) -> None:
    for _ in range(6):
        bisections.advance_bisections(utc_now())
        line.answer_confirmation_runs(rates(line))
    page = text(alice, reverse("alert", args=[alert.pk]))
    for run in Run.objects.all():
        assert reverse("run", args=[run.pk]) in page
    assert f"{reverse('compare')}?benchmark=server%2Fhello&amp;baseline=" in page
    assert f"{reverse('history')}?benchmark=server%2Fhello&amp;case=" in page
    assert "good" in page
    assert line.commits[26].short_sha in page
    assert "caused by" in page


def test_an_alert_begins_with_its_verdict_and_one_row_of_actions(
    alert: Alert, alice: Client
) -> None:
    page = text(alice, reverse("alert", args=[alert.pk]))
    verdict = get_text(element(page, ".verdict-line"))
    actions = element(page, ".triage-row .actions")
    label = alert.change_point.series.case.label
    assert verdict.startswith(f"Requests per second of {label} on here fell by 8.0 %")
    assert "on here fell by 8.0 % (95 % interval −8." in verdict
    assert verdict.endswith("; a confirmation run confirmed it.")
    assert [each["value"] for each in elements(actions, "button")] == [
        "acknowledge", "confirm", "resolve", "accept", "dismiss", "note",
    ]  # fmt: skip
    assert page.index("triage-row") < page.index("shift-chart") < page.index("Affected series")


def test_the_chart_shows_both_levels_around_the_shift(
    line: Line, alert: Alert, alice: Client
) -> None:
    chart = element(text(alice, reverse("alert", args=[alert.pk])), ".shift-chart")
    dots = elements(chart, ".dot")
    before_y, after_y = (
        float(each["d"].split()[1].split("h")[0]) for each in elements(chart, ".level")
    )
    change_x = float(element(chart, ".change")["d"].removeprefix("M").split()[0])
    after = [each for each in dots if float(each["d"].removeprefix("M").split()[0]) > change_x]
    ys = [float(each["d"].split()[1].removesuffix("h0")) for each in after]
    assert len(dots) == 11, "commits 0, 4, …, 40"
    assert len(after) == 4
    assert get_text(after[0]).startswith(f"{line.commits[28].short_sha} commit 28: 9")
    assert 0 < before_y < after_y < 220, "fewer requests per second are further below"
    assert all(abs(y - after_y) < abs(y - before_y) for y in ys)
    assert "1/s (axis cut: it does not begin at 0)" in get_text(chart)


def test_an_alert_whose_points_are_gone_has_no_chart(
    line: Line, alert: Alert, alice: Client
) -> None:
    Point.objects.filter(commit=alert.change_point.commit).delete()
    page = text(alice, reverse("alert", args=[alert.pk]))
    assert elements(page, ".shift-chart") == []
    assert "Affected series" in page


def test_neighbouring_commits_name_the_cause(line: Line, alice: Client) -> None:
    Project.objects.update(repository_url="https://github.com/acme/shop.git")
    line.step(until=41, at=26, change=-0.08)
    (row,) = line.detect()
    alert = Alert.objects.create(
        team=line.project.team, benchmark=line.benchmark, change_point=row, confirmed=False,
        raised_at=utc_now(), changed_at=utc_now(),
    )  # fmt: skip
    alert.change_points.add(row)
    page = text(alice, reverse("alert", args=[alert.pk]))
    facts = get_text(element(page, "dl.facts"))
    old, new = line.commits[25].sha, line.commits[26].sha
    assert f"Cause commit 26 {new[:10]} by Ada" in facts
    assert "between" not in facts
    assert f"https://github.com/acme/shop/commit/{new}" in values(page, "dl.facts a", "href")
    assert f"https://github.com/acme/shop/compare/{old}...{new}" in values(
        page, "dl.facts a", "href"
    )
    assert "it is not confirmed yet" in page
    assert f"caused by {new[:10]} commit 26" in text(alice, reverse("alerts"))


def test_external_results_have_no_link_to_distributions(
    personas: Personas, tmp_path: Path, alice: Client
) -> None:
    line = make_line(personas.alice, tmp_path / "external", external=True)
    line.step(until=41, at=26, change=-0.08)
    line.step(until=41, at=26, change=0.12, metric="latency.p50")
    rows = line.detect()
    by_metric = {row.series.metric.key: row for row in rows}
    alert = Alert.objects.create(
        team=line.project.team, benchmark=line.benchmark,
        change_point=by_metric["latency.p50"], confirmed=False,
        raised_at=utc_now(), changed_at=utc_now(),
    )  # fmt: skip
    alert.change_points.add(*rows)
    page = text(alice, reverse("alert", args=[alert.pk]))
    assert "Distributions" not in page
    assert reverse("compare") in page
    assert "external results cannot be measured again" in page
    assert get_text(element(page, "h1")).startswith("Hello: Requests per second −")


def test_links_of_an_alert_resolve(alert: Alert, alice: Client) -> None:
    page = text(alice, reverse("alert", args=[alert.pk]))
    for part in page.split('href="')[1:]:
        url = part.split('"')[0].replace("&amp;", "&")
        if url.startswith("/") and not url.startswith(("/static", "/api")):
            assert alice.get(url).status_code in (200, 302), url


def test_buttons_acknowledge_resolve_and_reopen(alert: Alert, alice: Client) -> None:
    url = reverse("alert-change", args=[alert.pk])
    alice.post(url, {"do": "acknowledge", "note": "on it"})
    page = text(alice, reverse("alerts"))
    assert "alice" in page
    assert elements(page, ".count") == []
    refused = alice.post(url, {"do": "resolve", "note": ""})
    assert refused.status_code == 422
    assert get_text(element(refused, "#note-error")) == "Enter the reason, for the other members."
    assert element(refused, "#note")["aria-invalid"] == "true"
    assert elements(refused, ".notice[role=alert]") == []
    alice.post(url, {"do": "resolve", "note": "reverted"})
    assert "No alerts match these filters" in text(alice, reverse("alerts"))
    assert "Hello" in text(alice, reverse("alerts") + "?state=resolved")
    alice.post(url, {"do": "reopen"})
    alice.post(url, {"do": "assign", "assignee": "bob"})
    alert.refresh_from_db()
    assert alert.state == "open"
    assert alert.assignee is not None
    assert alert.assignee.get_username() == "bob"


def test_alerts_are_filtered_and_changed_in_bulk(
    alert: Alert, alice: Client, bob: Client, mallory: Client
) -> None:
    url, change = reverse("alerts"), reverse("alerts-change")
    other = Alert.objects.create(
        team=alert.team, benchmark=alert.benchmark, change_point=alert.change_point,
        confirmed=False,
        raised_at=utc_now(), changed_at=utc_now(), state="resolved",
    )  # fmt: skip
    both = {"alert": [alert.pk, other.pk], "do": "silence", "note": "holiday"}
    assert bob.post(change, both | {"until": "2099-01-01"}).status_code == 403
    assert mallory.post(change, both).status_code in (404, 422)
    refused = alice.post(change, both)
    assert (refused.status_code, "Choose the end date" in refused.content.decode()) == (422, True)
    assert alice.post(change, {"do": "confirm"}).status_code == 422

    soon = f"{utc_now() + timedelta(days=2):%Y-%m-%d}"
    partly = alice.post(f"{change}?state=all", both | {"until": soon})
    assert "1 of 2 alerts changed. This alert is already resolved" in partly.content.decode()
    assert soon in text(alice, f"{url}?state=silenced&owner=nobody")
    assert "No alerts match these filters" in text(alice, f"{url}?state=silenced&owner=me")
    answer = alice.post(f"{change}?owner=me", {"alert": alert.pk, "do": "confirm", "note": "real"})
    assert answer.headers["Location"] == f"{url}?owner=me"
    page = text(bob, f"{url}?owner=alice&order=largest")
    assert "real" in page
    assert elements(page, "[name=alert]") == []
    assert "silenced until" in text(bob, reverse("alert", args=[alert.pk]))


def test_an_alert_links_to_both_distributions_and_their_trials(
    line: Line, alert: Alert, alice: Client
) -> None:
    page = text(alice, reverse("alert", args=[alert.pk]))
    lead = alert.change_point
    query = f"case_key={line.cases[0].key}&amp;host_id={line.host.pk.hex}"
    assert query in page
    for commit in (lead.before, lead.commit):
        assert reverse("history-point", args=[lead.series_id, commit.short_sha]) in page


def test_dismissing_needs_a_reason_and_dismisses_the_change_points(
    alert: Alert, alice: Client
) -> None:
    alice.post(reverse("alert-change", args=[alert.pk]), {"do": "dismiss", "note": "meant so"})
    assert set(ChangePoint.objects.values_list("state", flat=True)) == {"dismissed"}


def test_a_change_point_can_be_measured_again(line: Line, alert: Alert, alice: Client) -> None:
    url = reverse("alert-confirm", args=[alert.pk, alert.change_point_id])
    answer = alice.post(url)
    run = Run.objects.get(state="queued")
    assert answer.headers["Location"] == reverse("run", args=[run.pk])
    assert alice.post(url).status_code == 422


def test_a_viewer_has_no_buttons_and_a_stranger_sees_no_alert(
    alert: Alert, bob: Client, mallory: Client
) -> None:
    url = reverse("alert", args=[alert.pk])
    assert elements(text(bob, url), "button[name=do]") == []
    assert (
        bob.post(reverse("alert-change", args=[alert.pk]), {"do": "acknowledge"}).status_code == 403
    )
    assert mallory.get(url).status_code == 404
    assert "No alert yet" in text(mallory, reverse("alerts"))


def test_alert_rules_of_the_project_are_changed(line: Line, alice: Client, bob: Client) -> None:
    url = reverse("project-changes", args=["server"])
    assert "60" in text(alice, url)
    alice.post(url, {"confirm": "on", "machine_minutes_a_day": "30"})
    line.project.refresh_from_db()
    rules = line.project
    assert (rules.confirm_changes, rules.bisect_changes) == (True, False)
    assert rules.machine_minutes_a_day == 30
    assert "<dt>Bisection</dt><dd>off</dd>" in text(bob, url)
    assert bob.post(url, {"machine_minutes_a_day": "5"}).status_code == 403
    assert alice.post(url, {"machine_minutes_a_day": "-1"}).status_code == 422
    assert reverse("project-changes", args=["server"]) in text(
        alice, reverse("project", args=["server"])
    )


def test_a_note_with_a_nul_byte_is_refused(alert: Alert, alice: Client) -> None:
    """PostgreSQL cannot store one. The page reads this field without a form."""
    response = alice.post(reverse("alert", args=[alert.pk]), {"do": "note", "note": "a\0b"})
    assert response.status_code == 400
    assert response.content == b"The field note contains a NUL byte. Remove it.\n"
