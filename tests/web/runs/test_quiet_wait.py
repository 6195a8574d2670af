"""The page of a run whose trials wait for a quiet host: the reason, and the end of the wait."""

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.models import AuditEntry
from orchestrator.core.errors import ConflictError
from orchestrator.runs.models import Job, Run
from orchestrator.runs.quiet_wait import WAITING_PHASE, describe_busy_host, end_quiet_waits
from tests.support.factories import make_run
from tests.support.html_pages import elements
from tests.support.world import World


@pytest.fixture
def waiting_run(world: World) -> Run:
    run = make_run(world.alice, world.shas[:2])
    message = describe_busy_host("lab-1", 0.62, [{"name": "chromium", "cpu_s": 0.3}])
    Job.objects.filter(run=run).update(state="measuring", phase=WAITING_PHASE, message=message)
    Run.objects.filter(pk=run.pk).update(state="running")
    return run


def test_page_shows_the_reason_and_ends_the_wait(waiting_run: Run, alice: Client) -> None:
    address = reverse("run", args=[waiting_run.pk])
    page = alice.get(address).content.decode()
    assert "mostly chromium" in page
    assert elements(page, "button[form=measure-now]")
    answer = alice.post(reverse("run-measure-now", args=[waiting_run.pk]))
    assert answer.headers["Location"] == address
    waiting_run.refresh_from_db()
    assert waiting_run.wait_for_quiet is False
    assert AuditEntry.objects.filter(action="run.wait_ended").count() == 1


def test_viewers_and_strangers_do_not_end_the_wait(
    waiting_run: Run, bob: Client, mallory: Client
) -> None:
    address = reverse("run-measure-now", args=[waiting_run.pk])
    page = bob.get(reverse("run", args=[waiting_run.pk])).content.decode()
    assert "mostly chromium" in page
    assert not elements(page, "button[form=measure-now]")
    assert bob.post(address).status_code == 403
    assert mallory.post(address).status_code == 404
    waiting_run.refresh_from_db()
    assert waiting_run.wait_for_quiet is True


def test_ended_run_has_no_wait(world: World) -> None:
    with pytest.raises(ConflictError, match="already ended"):
        end_quiet_waits(member=world.alice, run_id=world.run.pk)


def test_waiting_job_is_polled_at_once(world: World, waiting_run: Run) -> None:
    Job.objects.filter(run=waiting_run).update(poll_at=None)
    end_quiet_waits(member=world.alice, run_id=waiting_run.pk)
    assert waiting_run.jobs.get().poll_at is not None
