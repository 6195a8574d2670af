"""What `/metrics` says is so, adds up over processes, and names no team."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.urls import reverse

from orchestrator.core import counting
from orchestrator.core.clock import utc_now
from orchestrator.core.counting import count, observe
from orchestrator.core.errors import LoginRefusedError
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import record_host_error
from orchestrator.operations.counts import flush_counts
from orchestrator.operations.families import FAMILIES
from orchestrator.runs.leasing import lease_queued_jobs
from orchestrator.runs.models import Job
from tests.support.factories import make_definition, make_local_host, make_project, make_run

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="[^"]*",?)*)\})? (\S+)$')


def read(client, **headers):
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.content
    lines = [line for line in answer.content.decode().splitlines() if not line.startswith("#")]
    samples = {}
    for line in lines:
        name, labels, value = SAMPLE.fullmatch(line).groups()
        samples[f"{name}{{{labels}}}" if labels else name] = float(value)
    return samples


@pytest.fixture
def queued(personas, tmp_path):
    """Two jobs for one host, both asked for a minute ago."""
    project, shas = make_project(personas.alice, tmp_path / "origin", [{"a": "1"}, {"a": "2"}])
    make_definition(personas.alice, project)
    make_local_host(personas.alice)
    for _ in range(2):
        make_run(personas.alice, shas, rounds=1)
    Job.objects.update(created_at=utc_now() - timedelta(seconds=60))


def test_metrics_cover_queue_leases_hosts_and_phases(client, queued):
    before = read(client)
    assert before["pitwall_queue_jobs"] == 2
    assert 60 <= before["pitwall_queue_oldest_seconds"] < 120
    assert before["pitwall_leases"] == 0
    assert before['pitwall_hosts{state="ready"}'] == 1
    for queue in ("steps", "background", "fetches"):
        assert before[f'pitwall_broker_messages{{queue="{queue}"}}'] >= 0
    lease_queued_jobs()
    after = read(client)
    assert (after["pitwall_queue_jobs"], after["pitwall_leases"]) == (1, 1)
    assert after['pitwall_jobs{phase="connecting"}'] == 1
    Job.objects.filter(state="preparing").update(
        phase="red said so", poll_at=utc_now() - timedelta(seconds=20)
    )
    late = read(client)
    assert late['pitwall_jobs{phase="other"}'] == 1, "what a host tells is no label"
    assert late["pitwall_jobs_overdue"] == 1


@pytest.mark.django_db
def test_metrics_of_all_processes_are_summed(client):
    for seconds in (0.004, 0.2, 99):
        observe("pitwall_task_seconds", seconds, task="pump")
    count("pitwall_trials_total", 2, outcome="measured")
    flush_counts()
    # Another process.
    observe("pitwall_task_seconds", 0.2, task="pump")
    count("pitwall_trials_total", outcome="measured")
    samples = read(client)
    assert samples['pitwall_trials_total{outcome="measured"}'] == 3
    buckets = [
        (float(le), value)
        for name, value in samples.items()
        for le in re.findall(r'pitwall_task_seconds_bucket\{task="pump",le="(.*)"\}', name)
    ]
    assert buckets == [(0.005, 1), (0.25, 3), (float("inf"), 4)]
    assert samples['pitwall_task_seconds_count{task="pump"}'] == 4
    assert samples['pitwall_task_seconds_sum{task="pump"}'] == pytest.approx(99.404)


def test_no_count_is_lost_while_redis_is_down(client, settings, queued):
    url = settings.CELERY_BROKER_URL
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    record_host_error(host=Host.objects.get(), error=LoginRefusedError("no"))
    away = read(client)
    assert (away['pitwall_up{part="redis"}'], away["pitwall_queue_jobs"]) == (0, 2)
    settings.CELERY_BROKER_URL = url
    there = read(client)
    assert there['pitwall_up{part="redis"}'] == 1
    assert there['pitwall_host_failures_total{kind="LoginRefused"}'] == 1


def test_pages_are_timed_by_their_pattern(client, queued, settings):
    client.get("/runs/0197aaaa-0000-7000-8000-000000000000/")
    client.get("/no-such-page-of-team-red/")
    text = json.dumps(list(read(client)))
    assert "/runs/<uuid:run_id>/" in text
    assert "0197aaaa" not in text
    assert not re.search(r"\b(red|alice|hello|origin)\b", text)


@pytest.mark.django_db
def test_metrics_are_only_for_this_machine_and_token_holders(client, settings):
    assert client.get("/metrics", REMOTE_ADDR="10.0.0.9").status_code == 403
    assert client.get("/metrics").status_code == 200
    for name in ("X-Forwarded-For", "X-Real-IP", "x-real-ip", "Forwarded", "Via"):
        assert client.get("/metrics", headers={name: "127.0.0.1"}).status_code == 403, name
    # Behind a proxy that adds nothing, every stranger seems to be this machine.
    for name, value in (("ALLAUTH_TRUSTED_PROXY_COUNT", 1), ("HTTPS", True)):
        usual = getattr(settings, name)
        setattr(settings, name, value)
        assert client.get("/metrics").status_code == 403, name
        setattr(settings, name, usual)
    settings.METRICS_TOKEN = "a-token-of-some-length"
    assert client.get("/metrics").status_code == 403
    assert client.get("/metrics", headers={"Authorization": "Bearer other"}).status_code == 403
    read(client, Authorization="Bearer a-token-of-some-length")


def test_every_metric_has_a_description():
    called = r'\b(?:count|observe)\(\s*"(pitwall_\w+)"'
    names = {
        name
        for path in (ROOT / "orchestrator").rglob("*.py")
        for name in re.findall(called, path.read_text())
    }
    counted = {name for name, family in FAMILIES.items() if family.kind != "gauge"}
    assert names == counted


def test_a_process_that_cannot_flush_does_not_grow(monkeypatch):
    monkeypatch.setattr(counting, "MOST_COUNTS", 3)
    for number in range(9):
        count("pitwall_trials_total", outcome=str(number))
    assert len(counting.drain()) == 3


def test_the_dashboard_uses_existing_metrics_and_labels():
    board = json.loads((ROOT / "docs" / "operations" / "grafana.json").read_text())
    texts = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    family_names = set()
    for text in texts:
        names = re.findall(r"pitwall_\w+", text)
        assert names, text
        families = [FAMILIES[re.sub(r"_(bucket|sum|count)$", "", name)] for name in names]
        known = {label for family in families for label in family.labels} | {"le"}
        grouped = re.findall(r"by \(([^)]*)\)", text)
        used = {word.strip() for part in grouped for word in part.split(",")}
        used |= set(re.findall(r"[{,]\s*(\w+)=", text))
        assert used <= known, text
        family_names |= {family.name for family in families}
    assert family_names == set(FAMILIES), "every metric has its place on the board"


def test_a_request_has_an_id_that_a_proxy_may_choose(client, db):
    given = client.get(reverse("login"), headers={"X-Request-ID": "proxy-12345678"})
    assert given.headers["X-Request-ID"] == "proxy-12345678"
    forged = client.get(reverse("login"), headers={"X-Request-ID": 'a"b\\nc'})
    assert re.fullmatch(r"[0-9a-f]{16}", forged.headers["X-Request-ID"])
