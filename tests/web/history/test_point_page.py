"""One point of a history: its values, its trials, and a new baseline there."""

from typing import Any
from uuid import uuid4

from django.db import transaction
from django.test import Client
from django.urls import reverse

from orchestrator.benchmarks.models import Commit
from orchestrator.core.clock import utc_now
from orchestrator.fleet.external import provide_external_host
from orchestrator.measurements.recording import MeasuredRow
from orchestrator.results.models import Baseline, Series
from tests.support.factories import record
from tests.support.world import World


def _address(world: World, page: str = "history-point", place: int = 1, **found: Any) -> str:
    series = Series.objects.get(metric__key="requests.rate", **found)
    return reverse(page, args=[series.pk, world.shas[place][:8]])


def test_trials_of_a_point_are_listed(world: World, alice: Client) -> None:
    answer = alice.get(_address(world))
    page = answer.content.decode()

    trials = answer.context["details"].trials
    assert len(trials) == 6
    assert all(reverse("trial", args=[each.id]) in page for each in trials)
    assert "version 2" in page
    assert f"baseline={world.shas[0]}" in answer.context["compare_url"]


def test_the_panel_is_a_part_of_the_page(world: World, alice: Client) -> None:
    panel = alice.get(_address(world), {"panel": "1"}).content.decode()

    assert "<html" not in panel
    assert "6 trials" in panel


def test_an_unknown_hash_is_not_found(world: World, alice: Client) -> None:
    series = Series.objects.get(metric__key="requests.rate")
    assert alice.get(reverse("history-point", args=[series.pk, "0" * 8])).status_code == 404
    assert alice.get(reverse("history-commit", args=[series.pk, "0" * 8])).status_code == 404


def test_the_commit_of_a_point_is_shown(world: World, alice: Client) -> None:
    facts = alice.get(_address(world, "history-commit")).json()

    assert (facts["commit"], facts["subject"], facts["author"]) == (
        world.shas[1],
        "version 2",
        "Ada",
    )


def test_a_baseline_is_set_for_a_series_or_its_case(
    world: World, alice: Client, bob: Client
) -> None:
    address = _address(world, "history-baseline")
    assert bob.post(address, {"reason": "a new server"}).status_code == 403
    alice.post(address, {"reason": "a new server"})
    alice.post(address, {"reason": "all of it", "scope": "case"})

    first, second = Baseline.objects.order_by("pk")
    assert (first.series.metric.key, first.case, first.reason) == (
        "requests.rate",
        None,
        "a new server",
    )
    assert (second.series, second.case.benchmark.slug) == (None, "hello")
    assert "all of it" in alice.get(_address(world)).content.decode()
    address = reverse("history-baseline-remove", args=[second.pk])
    assert address in alice.get(reverse("history")).content.decode()
    assert bob.post(address).status_code == 403
    alice.post(address)
    assert list(Baseline.objects.all()) == [first]


def test_metadata_of_external_trials_are_shown(world: World, alice: Client) -> None:
    case = Series.objects.first().case
    host = provide_external_host(member=world.alice, name="ci")
    with transaction.atomic():
        record(
            [
                MeasuredRow(
                    id=uuid4(),
                    benchmark=case.benchmark_id,
                    case=case.pk,
                    host=host.pk,
                    commit=Commit.objects.get(sha=world.shas[1]).pk,
                    at=utc_now(),
                    validity=validity,
                    readings={"requests.rate": 900.0},
                    provenance={"runner": "ubuntu-<24>"},
                )
                for validity in ("valid", "suspect")
            ]
        )
    page = alice.get(_address(world, host__name="ci")).content.decode()

    assert "runner: ubuntu-&lt;24&gt;" in page
    assert "2 trials" in page
    assert "1 suspect" in page
