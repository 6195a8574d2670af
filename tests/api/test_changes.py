"""Change points and alerts through the API."""

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from orchestrator.alerts import alert_rules
from orchestrator.alerts.models import Alert
from orchestrator.core.clock import utc_now
from orchestrator.regressions import bisections, confirmations
from tests.api.conftest import ApiClient, make_client
from tests.support.commit_lines import Line, make_line
from tests.support.factories import Personas


@pytest.fixture
def line(personas: Personas, settings: object, tmp_path: Path) -> Line:
    made = make_line(personas.alice, tmp_path / "origin")
    made.step(until=41, at=26, change=-0.08, every=4)
    made.detect()
    return made


@pytest.fixture
def alice(line: Line) -> ApiClient:
    return make_client(line.member)


def raise_alert(line: Line) -> Alert:
    rates = {c.sha: 920.0 if place >= 26 else 1000.0 for place, c in enumerate(line.commits)}
    for _ in range(6):
        confirmations.advance_confirmations(utc_now())
        bisections.advance_bisections(utc_now())
        line.answer_confirmation_runs(rates)
    alert_rules.apply_alert_rules(utc_now())
    return Alert.objects.get()


def test_change_points_are_listed_and_shown(line: Line, alice: ApiClient) -> None:
    listed = alice.get("change-points", benchmark="hello", metric="requests.rate").json()
    (point,) = listed["change_points"]
    assert point["commit"]["commit"] == line.commits[28].sha
    assert point["before_commit"]["commit"] == line.commits[24].sha
    assert (point["kind"], point["state"], point["regressed"]) == ("alert", "open", True)
    assert point["interval"][0] < point["change"] < point["interval"][1]
    assert point["revisions"][0]["text"].startswith("detected")
    assert alice.get(f"change-points/{point['id']}").json() == point
    assert alice.get("change-points", state="refuted").json()["change_points"] == []


def test_a_change_point_is_confirmed_and_dismissed(line: Line, alice: ApiClient) -> None:
    (point,) = alice.get("change-points").json()["change_points"]
    begun = alice.post(f"change-points/{point['id']}/confirm").json()
    assert begun["state"] == "confirming"
    assert alice.get(f"runs/{begun['run']}").json()["state"] == "queued"
    assert alice.post(f"change-points/{point['id']}/confirm").status_code == 409
    path = f"change-points/{point['id']}/dismiss"
    assert alice.post(path, {}).status_code == 422
    assert alice.post(path, {"reason": "meant so"}).json()["state"] == "dismissed"


def test_an_alert_reports_its_confirmation_run_and_bisection(line: Line, alice: ApiClient) -> None:
    alert = raise_alert(line)
    (item,) = alice.get("alerts", state="open").json()["alerts"]
    assert (item["id"], item["confirmed"]) == (str(alert.pk), True)
    assert item["change_points"][0]["culprit"]["commit"] == line.commits[26].sha
    (search,) = item["bisections"]
    assert search["state"] == "found"
    steps = {step["commit"]: step["is_bad"] for step in search["steps"]}
    assert steps[line.commits[26].sha]
    assert alice.get(f"alerts/{alert.pk}").json() == item


def test_alerts_are_acknowledged_and_resolved(line: Line, alice: ApiClient) -> None:
    path = f"alerts/{raise_alert(line).pk}"
    taken = alice.post(f"{path}/acknowledge").json()
    assert (taken["state"], taken["assignee"]) == ("acknowledged", "alice")
    assert alice.put(f"{path}/assignee", {"assignee": None}).json()["assignee"] is None
    assert alice.post(f"{path}/resolve", {"reason": "reverted"}).json()["note"] == "reverted"
    assert alice.post(f"{path}/resolve", {"reason": "again"}).status_code == 409
    assert alice.post(f"{path}/reopen").json()["state"] == "open"
    assert alice.post(f"{path}/dismiss", {"reason": "none"}).json()["state"] == "dismissed"


def test_alerts_are_triaged(line: Line, alice: ApiClient) -> None:
    path = f"alerts/{raise_alert(line).pk}"
    until = (utc_now() + timedelta(days=2)).isoformat()
    assert alice.post(f"{path}/silence", {"until": "2001-01-01T00:00:00Z"}).status_code == 422
    silenced = alice.post(f"{path}/silence", {"until": until, "note": "later"}).json()
    assert (silenced["state"], silenced["note"]) == ("silenced", "later")
    confirmed = alice.post(f"{path}/confirm").json()
    assert (confirmed["state"], confirmed["silenced_until"]) == ("confirmed", None)
    assert len(alice.get("alerts", assignee="me").json()["alerts"]) == 1
    assert alice.get("alerts", assignee="nobody").json()["alerts"] == []
    assert alice.put(f"{path}/note", {"note": ""}).json()["note"] == ""
    accepted = alice.post(f"{path}/accept", {"reason": "safer"}).json()
    assert (accepted["state"], accepted["fixed_by"]) == ("accepted", None)
    assert [each["text"].split(" ")[0] for each in accepted["log"]] == [
        "silenced", "confirmed", "note", "accepted:",
    ]  # fmt: skip
    assert alice.get("baselines").json()["baselines"][0]["reason"] == "safer"


def test_strangers_and_viewers_are_refused(line: Line, personas: Personas) -> None:
    alert = raise_alert(line)
    bob, mallory = make_client(personas.bob), make_client(personas.mallory)
    assert len(bob.get("alerts").json()["alerts"]) == 1
    assert bob.post(f"alerts/{alert.pk}/acknowledge").status_code == 403
    assert mallory.get("alerts").json()["alerts"] == []
    assert mallory.get(f"alerts/{alert.pk}").status_code == 404
    assert mallory.get("change-points").json()["change_points"] == []
    assert mallory.get("projects/server/changes").status_code == 404


def test_uploaded_results_raise_an_alert_without_a_confirmation_run(
    line: Line, alice: ApiClient
) -> None:
    rng = np.random.default_rng(3)
    results = [
        {
            "id": f"build-{number}",
            "benchmark": "hello",
            "host": "ci",
            "profile": "any",
            "commit": f"{number:040x}",
            "parameters": line.cases[0].parameters,
            "metrics": {"requests.rate": (920 if number >= 25 else 1000) * rng.normal(1, 0.01)},
        }
        for number in range(1, 41)
    ]
    assert alice.post("results", {"results": results}).status_code in (200, 201)
    line.detect()
    confirmations.advance_confirmations(utc_now())
    alert_rules.apply_alert_rules(utc_now())
    (point,) = alice.get("change-points", host="ci").json()["change_points"]
    assert point["commit"]["commit"] == f"{25:040x}"
    assert point["message"] == "not confirmed: measured on an external host"
    alerts = alice.get("alerts").json()["alerts"]
    (alert,) = [each for each in alerts if each["change_points"][0]["host"] == "ci"]
    assert not alert["confirmed"]


def test_a_new_baseline_restarts_a_history(
    line: Line, alice: ApiClient, personas: Personas
) -> None:
    body = {
        "benchmark": "hello",
        "case": line.cases[0].key,
        "commit": line.commits[28].sha,
        "reason": "the answers are longer now",
    }
    made = alice.post("baselines", body).json()
    assert (made["host"], made["created_by"]) == (None, "alice")
    line.detect()
    assert alice.get("change-points").json()["change_points"] == []
    one = {**body, "host": "here", "metric": "requests.rate"}
    assert alice.post("baselines", one).json()["metric"] == "requests.rate"
    assert alice.post("baselines", {**body, "host": "here"}).status_code == 422
    assert alice.post("baselines", {**one, "metric": "latency.p90"}).status_code == 404
    assert len(alice.get("baselines", benchmark="hello").json()["baselines"]) == 2
    mallory = make_client(personas.mallory)
    assert mallory.get("baselines").json()["baselines"] == []
    assert mallory.delete(f"baselines/{made['id']}").status_code == 404
    assert alice.delete(f"baselines/{made['id']}").status_code == 204
    assert len(alice.get("baselines").json()["baselines"]) == 1


def test_the_rules_of_a_project_are_read_and_changed(line: Line, alice: ApiClient) -> None:
    path = "projects/server/changes"
    rules = {"confirm": True, "bisect": True, "machine_minutes_a_day": 60}
    assert alice.get(path).json() == rules
    changed = {"confirm": False, "bisect": True, "machine_minutes_a_day": 5}
    assert alice.put(path, changed).json() == changed
    assert alice.put(path, {**changed, "machine_minutes_a_day": -1}).status_code == 422
