"""A job keeps one set of certificates and one secret for its hosts, as long as it is at work."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.rounds import build_round_plans
from orchestrator.dispatch.shared_secret import load_secret
from orchestrator.runs import claims
from orchestrator.runs.models import Job
from orchestrator.runs.states import JobState
from tests.dispatch.support import leased
from tests.support.factories import DEFINITION, Personas
from tests.support.leaks import leaks, tables

SECURE = DEFINITION.replace("  path: /hello\n", "  path: /hello\n  tls: true\n").replace(
    '"{port}"]', '"{port}", "--cert", "{cert}", "--key", "{key}"]'
)


@pytest.fixture
def job(personas: Personas, tmp_path: Path) -> Job:
    return leased(personas, tmp_path, SECURE)


def tls_in_plans(job: Job) -> dict[str, dict[str, Any]]:
    plans = build_round_plans(job, JobHosts(job), ports={})
    return {label: json.loads(plan)["tls"] for label, plan in plans.items()}


def test_all_hosts_trust_one_authority_and_only_the_server_has_the_key(job: Job) -> None:
    tls = tls_in_plans(job)
    assert tls["a"]["ca"] == tls["b"]["ca"]
    assert "PRIVATE KEY" in tls["a"]["key"]
    assert "CERTIFICATE" in tls["a"]["cert"]
    assert (tls["b"]["cert"], tls["b"]["key"]) == (None, None)


def test_later_plans_of_a_job_have_the_same_certificates(job: Job) -> None:
    first = tls_in_plans(job)
    again = Job.objects.get(pk=job.pk)
    assert tls_in_plans(again) == first


def test_certificates_are_sealed_in_the_database(job: Job) -> None:
    tls_in_plans(job)
    stored = bytes(Job.objects.get(pk=job.pk).tls)
    assert len(stored) > 100
    assert b"PRIVATE" not in stored


def test_certificates_are_deleted_when_the_job_ends(job: Job) -> None:
    tls_in_plans(job)
    claims.end_job(job, JobState.FAILED, "over")
    assert Job.objects.get(pk=job.pk).tls is None


def test_another_attempt_gets_new_certificates(job: Job) -> None:
    tls_in_plans(job)
    claims.requeue_job(job, "gone", wait_s=0)
    assert Job.objects.get(pk=job.pk).tls is None


def test_an_ended_job_cannot_have_certificates(job: Job) -> None:
    tls_in_plans(job)
    Job.objects.filter(pk=job.pk).update(sealed_secret=None)
    with pytest.raises(IntegrityError, match="job_tls_while_active"), transaction.atomic():
        Job.objects.filter(pk=job.pk).update(state="failed")


def test_a_job_without_tls_has_no_certificates(personas: Personas, tmp_path: Path) -> None:
    job = leased(personas, tmp_path, DEFINITION)
    assert tls_in_plans(job) == {"a": None, "b": None}
    assert Job.objects.get(pk=job.pk).tls is None


def read_secrets(job: Job) -> set[str | None]:
    plans = build_round_plans(job, JobHosts(job), ports={})
    return {json.loads(plan)["secret"] for plan in plans.values()}


def test_hosts_of_a_job_share_a_secret_that_no_table_shows(job: Job) -> None:
    (secret,) = read_secrets(job)
    assert secret is not None
    assert re.fullmatch("[0-9a-f]{64}", secret)
    assert read_secrets(Job.objects.get(pk=job.pk)) == {secret}
    assert leaks(tables(), {"secret of the job": secret}) == []


def test_the_shared_secret_is_deleted_with_the_job(job: Job) -> None:
    read_secrets(job)
    Job.objects.filter(pk=job.pk).update(tls=None)
    with pytest.raises(IntegrityError, match="job_secret_while_active"), transaction.atomic():
        Job.objects.filter(pk=job.pk).update(state="failed")
    claims.end_job(job, JobState.FAILED, "over")
    assert Job.objects.get(pk=job.pk).sealed_secret is None


def test_another_attempt_gets_another_shared_secret(job: Job) -> None:
    read_secrets(job)
    claims.requeue_job(job, "gone", wait_s=0)
    assert Job.objects.get(pk=job.pk).sealed_secret is None


def test_a_single_host_needs_no_shared_secret(personas: Personas, tmp_path: Path) -> None:
    job = leased(personas, tmp_path, DEFINITION, placements=(), hosts=("one",))
    assert load_secret(job, JobHosts(job)) is None
    assert Job.objects.get(pk=job.pk).sealed_secret is None
