"""The button that measures this machine: on a developer's own machine, before the first run."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.fleet.models import Host
from orchestrator.runs.models import Run
from tests.support.factories import Personas, add_member, finish_run
from tests.support.html_pages import elements, get_text
from tests.support.world import World


@pytest.fixture
def own_machine(settings: Any, data_dir: Path) -> None:
    settings.ALLOW_LOCAL_HOST = True


def _start(client: Client) -> Any:
    """Press the button; the request is repeated when the files of the suite are fetched."""
    return client.post(reverse("measure-here"))


def _offers(client: Client) -> bool:
    address = reverse("measure-here")
    return bool(elements(client.get(reverse("overview")), f'form[action="{address}"]'))


@pytest.mark.usefixtures("own_machine")
def test_the_button_adds_a_host_and_a_suite_and_starts_a_run(
    personas: Personas, alice: Client
) -> None:
    assert _offers(alice)
    answer = _start(alice)
    run = Run.objects.get()
    host = Host.objects.get()

    assert answer.headers["Location"] == reverse("run", args=[run.pk])
    assert (host.name, host.transport, host.state) == ("this-machine", "local", "ready")
    assert host.team == personas.alice.team
    assert run.jobs.get().host == host
    assert run.definition.benchmark.project.repository_url == "catalogue:hello"
    assert (run.rounds, run.requested_by) == (7, personas.alice.user)
    assert not _offers(alice)


@pytest.mark.usefixtures("own_machine")
def test_the_page_of_the_run_shows_values(personas: Personas, alice: Client) -> None:
    _start(alice)
    run = Run.objects.get()
    page = reverse("run", args=[run.pk])
    assert not elements(alice.get(page), "#values-title")
    finish_run(run, [1000])
    shown = get_text(alice.get(page))
    assert "Case Host Requests per second Latency p50 Server CPU" in shown
    assert "1 000 1/s" in shown.replace("\u2009", " ").replace("\u202f", " ").replace("\xa0", " ")
    assert "median of 7" in shown

    trials = run.jobs.get().trials
    trials.filter(round=1).update(validity="invalid")
    assert "median of 6 usable of 7" in get_text(alice.get(page))
    trials.update(validity="invalid")
    assert "disturbed median of 7 trials, not reliable" in get_text(alice.get(page))


@pytest.mark.usefixtures("own_machine")
def test_a_local_host_of_the_team_is_used(world: World, alice: Client) -> None:
    Run.objects.all().delete()
    assert _offers(alice)
    _start(alice)
    assert Run.objects.get().jobs.get().host == world.host
    assert Host.objects.count() == 1


@pytest.mark.usefixtures("own_machine")
def test_only_maintainers_measure_this_machine(
    personas: Personas, alice: Client, bob: Client, client: Client
) -> None:
    add_member(personas.alice, "max", "member")
    client.login(username="max", password="correct horse battery")
    for other in (bob, client):
        assert not _offers(other)
        assert other.post(reverse("measure-here")).status_code == 403
    assert not Host.objects.exists()


def test_other_installations_measure_no_machine_of_theirs(
    settings: Any, personas: Personas, alice: Client
) -> None:
    settings.ALLOW_LOCAL_HOST = False
    assert not _offers(alice)
    refused = alice.post(reverse("measure-here"))
    assert refused.status_code == 409
    assert "measures only other machines" in get_text(refused)
    assert not Host.objects.exists()


def test_the_first_steps_lead_somewhere(data_dir: Path, personas: Personas, alice: Client) -> None:
    page = alice.get(reverse("overview"))
    steps = [str(each["href"]) for each in elements(page, ".empty ol a")]
    assert steps == [
        reverse("host-new"), reverse("catalogue"), reverse("project-new"), reverse("benchmark-new"),
    ]  # fmt: skip
    for address in steps:
        assert alice.get(address).status_code == 200
