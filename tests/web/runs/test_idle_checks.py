"""The form of a run shows whether other processes use its hosts."""

from datetime import timedelta
from typing import Any

from django.test import Client
from django.urls import reverse

from orchestrator.core.clock import utc_now
from orchestrator.dispatch.checkup import run_checks
from orchestrator.fleet.models import CheckOutcome, CheckRequest, CheckStep, Host, HostCheck
from orchestrator.runs.models import HostLease
from tests.support.html_pages import get_text
from tests.support.world import World

BUSY = "Results of this host will be less stable: other processes use 150 % of a core (backupd)"


def _preview(client: Client, world: World) -> str:
    data = {
        "benchmark": "server/hello", "baseline": world.shas[0], "contender": "main",
        "hosts": ["here"], "rounds": "7",
    }  # fmt: skip
    return get_text(client.post(reverse("run-preview"), data, HTTP_HX_REQUEST="true"))


def _store_check(world: World, outcome: str, *, age_s: float = 0) -> None:
    check = HostCheck.objects.create(
        host=world.host, step=CheckStep.QUIET, outcome=outcome, message=BUSY, seconds=2.0
    )
    HostCheck.objects.filter(pk=check.pk).update(at=utc_now() - timedelta(seconds=age_s))


def test_a_worker_is_asked_once_and_executes_only_the_idle_check(
    world: World, alice: Client, data_dir: Any
) -> None:
    assert "Checking whether here is idle" in _preview(alice, world)
    request = CheckRequest.objects.get()
    assert (request.host, request.idle_only) == (world.host, True)
    _preview(alice, world)
    assert CheckRequest.objects.get().requested_at == request.requested_at
    run_checks(world.host.pk)
    check = HostCheck.objects.get()
    assert (check.step, CheckRequest.objects.exists()) == (CheckStep.QUIET, False)
    # This machine may be busy, but the check does not fail.
    assert check.outcome in {CheckOutcome.PASSED, CheckOutcome.WARNING}
    page = _preview(alice, world)
    assert "Checking whether" not in page
    assert "here: idle, checked" in page or "here is busy." in page
    assert Host.objects.get().state == "ready"


def test_a_busy_host_is_shown_with_its_processes(world: World, alice: Client) -> None:
    _store_check(world, CheckOutcome.WARNING)
    page = _preview(alice, world)
    assert f"here is busy. {BUSY}" in page
    assert not CheckRequest.objects.exists()


def test_an_old_result_is_shown_and_renewed(world: World, alice: Client) -> None:
    _store_check(world, CheckOutcome.WARNING, age_s=61)
    page = _preview(alice, world)
    assert "here is busy." in page
    assert "Checking whether here is idle" in page


def test_a_page_does_not_wait_for_a_worker_without_limit(world: World, alice: Client) -> None:
    _preview(alice, world)
    CheckRequest.objects.update(requested_at=utc_now() - timedelta(seconds=21))
    assert "Checking whether" not in _preview(alice, world)


def test_a_host_with_a_job_is_not_disturbed(world: World, alice: Client) -> None:
    HostLease.objects.create(host=world.host, job=world.run.jobs.get())
    assert "Checking whether" not in _preview(alice, world)
    assert not CheckRequest.objects.exists()
