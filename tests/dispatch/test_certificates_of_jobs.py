"""A job keeps one set of certificates for its hosts, for as long as it is at work."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from orchestrator.dispatch.crew import Crew
from orchestrator.dispatch.rounds import plans_of_round
from orchestrator.runs import turns
from orchestrator.runs.models import Job
from orchestrator.runs.states import JobState
from tests.dispatch.support import leased
from tests.support.factories import DEFINITION, Personas

SECURE = DEFINITION.replace("  path: /hello\n", "  path: /hello\n  tls: true\n").replace(
    '"{port}"]', '"{port}", "--cert", "{cert}", "--key", "{key}"]'
)


@pytest.fixture
def job(personas: Personas, tmp_path: Path) -> Job:
    return leased(personas, tmp_path, SECURE)


def tls_in_plans(job: Job) -> dict[str, dict[str, Any]]:
    plans = plans_of_round(job, Crew(job), ports={})
    return {label: json.loads(plan)["tls"] for label, plan in plans.items()}


def test_all_hosts_trust_the_same_and_only_the_server_has_the_key(job: Job) -> None:
    found = tls_in_plans(job)
    assert found["a"]["ca"] == found["b"]["ca"]
    assert "PRIVATE KEY" in found["a"]["key"]
    assert "CERTIFICATE" in found["a"]["cert"]
    assert (found["b"]["cert"], found["b"]["key"]) == (None, None)


def test_a_later_plan_has_the_same_ones(job: Job) -> None:
    first = tls_in_plans(job)
    again = Job.objects.get(pk=job.pk)
    assert tls_in_plans(again) == first


def test_they_lie_sealed_in_the_database(job: Job) -> None:
    tls_in_plans(job)
    stored = bytes(Job.objects.get(pk=job.pk).tls)
    assert len(stored) > 100
    assert b"PRIVATE" not in stored


def test_they_are_forgotten_when_the_job_ends(job: Job) -> None:
    tls_in_plans(job)
    turns.end_job(job, JobState.FAILED, "over")
    assert Job.objects.get(pk=job.pk).tls is None


def test_another_attempt_gets_new_ones(job: Job) -> None:
    tls_in_plans(job)
    turns.put_back(job, "gone", wait_s=0)
    assert Job.objects.get(pk=job.pk).tls is None


def test_a_job_that_has_ended_cannot_keep_any(job: Job) -> None:
    tls_in_plans(job)
    with pytest.raises(IntegrityError, match="job_tls_while_active"), transaction.atomic():
        Job.objects.filter(pk=job.pk).update(state="failed")


def test_a_job_without_tls_has_none(personas: Personas, tmp_path: Path) -> None:
    job = leased(personas, tmp_path, DEFINITION)
    assert tls_in_plans(job) == {"a": None, "b": None}
    assert Job.objects.get(pk=job.pk).tls is None
