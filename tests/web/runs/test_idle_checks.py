"""The form of a run shows whether other processes use its hosts."""

from datetime import timedelta
from typing import Any

from django.test import Client
from django.urls import reverse

from orchestrator.core.clock import utc_now
from orchestrator.dispatch.checkup import run_checks
from orchestrator.fleet.models import CheckOutcome, CheckRequest, CheckStep, Host, HostCheck
from orchestrator.runs.models import HostLease
from tests.support.html_pages import get_text, values
from tests.support.world import World

BUSY = "Results of this host will be less stable: other processes use 150 % of a core (backupd)"


def _preview(client: Client, world: World) -> str:
    return get_text(_post_preview(client, world))


def _post_preview(client: Client, world: World) -> Any:
    data = {
        "benchmark": "server/hello", "baseline": world.shas[0], "contender": "main",
        "hosts": ["here"], "rounds": "7",
    }  # fmt: skip
    return client.post(reverse("run-preview"), data, HTTP_HX_REQUEST="true")


def _list_polled_addresses(page: Any) -> list[str]:
    return values(page, "[hx-trigger^=every]", "hx-get")


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


def test_the_page_loads_the_checks_until_they_end(world: World, alice: Client) -> None:
    (address,) = _list_polled_addresses(_post_preview(alice, world))
    during = alice.get(address)
    assert get_text(during) == "Checking whether here is idle…"
    assert _list_polled_addresses(during) == [address]
    run_checks(world.host.pk)
    after = alice.get(address)
    assert "checked just now" in get_text(after).lower()
    assert _list_polled_addresses(after) == []


def test_a_page_does_not_wait_for_a_worker_without_limit(world: World, alice: Client) -> None:
    _preview(alice, world)
    CheckRequest.objects.update(requested_at=utc_now() - timedelta(seconds=61))
    page = alice.get(reverse("run-idle-checks"), {"host": "here"})
    assert "No worker has checked whether here is idle" in get_text(page)
    assert _list_polled_addresses(page) == []


def test_hosts_of_another_team_are_not_shown(world: World, mallory: Client) -> None:
    _store_check(world, CheckOutcome.WARNING)
    assert get_text(mallory.get(reverse("run-idle-checks"), {"host": "here"})) == ""


def test_a_host_with_a_job_is_not_disturbed(world: World, alice: Client) -> None:
    HostLease.objects.create(host=world.host, job=world.run.jobs.get())
    assert "Checking whether" not in _preview(alice, world)
    assert not CheckRequest.objects.exists()
