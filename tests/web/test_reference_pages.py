"""The pages of published figures: their sources, what each says, and where to find a figure."""

import html
import re
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.results.importing import NewImport, import_results
from orchestrator.results.models import ReferenceResult
from tests.support.factories import Personas

CSV = (
    "suite,profile,case.system,metric,unit,value,commit\n"
    "overhead,small-box,flask,latency.p99,ms,4.5,v1\n"
    "overhead,small-box,<b>axum</b>,latency.p99,ms,n/a,v1\n"
)


@pytest.fixture
def source(personas: Personas) -> UUID:
    more = "".join(f"overhead,big-box,other,x{place},,{place},\n" for place in range(120))
    done = import_results(
        member=personas.alice,
        new=NewImport(
            name="A report",
            format="csv",
            content=(CSV + more).encode(),
            origin="https://example.org/report",
        ),
    )
    return done.source.pk


def text(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split()))


def test_it_lists_the_sources(source: UUID, alice: Client, bob: Client, mallory: Client) -> None:
    for client in (alice, bob):
        page = text(client, reverse("references"))
        assert "A report https://example.org/report csv 122 1" in page
    assert "Nothing imported yet" in text(mallory, reverse("references"))


def test_it_shows_figures_with_units_and_what_is_unknown(source: UUID, bob: Client) -> None:
    address = reverse("reference", args=[source])
    page = text(bob, address)
    assert "overhead system flask small-box latency.p99 4.50 ms v1 –" in page
    assert "system <b>axum</b> small-box latency.p99 unknown v1" in page
    assert "the source says n/a" in bob.get(address).content.decode()
    assert "Not measured here" in page
    assert "Page 1 of 2" in page


def test_it_finds_figures_by_words(source: UUID, alice: Client) -> None:
    page = text(alice, f"{reverse('reference', args=[source])}?q=FLASK+p99")
    assert "1 of them match" in page
    assert "axum" not in page
    paged = alice.get(f"{reverse('reference', args=[source])}?q=big-box&page=1").content.decode()
    assert "?page=2&amp;q=big-box" in paged
    assert "No figure has all" in text(alice, f"{reverse('reference', args=[source])}?q=%00zzz")


def test_a_stranger_finds_none(source: UUID, mallory: Client, client: Client) -> None:
    assert mallory.get(reverse("reference", args=[source])).status_code == 404
    assert client.get(reverse("reference", args=[source])).status_code == 302


def test_a_member_removes_a_source_with_its_figures(
    source: UUID, alice: Client, bob: Client, mallory: Client
) -> None:
    address = reverse("reference-remove", args=[source])
    assert alice.get(address).status_code == 405
    assert bob.post(address).status_code == 403
    assert mallory.post(address).status_code == 404
    assert "Remove it" not in text(bob, reverse("reference", args=[source]))
    assert ReferenceResult.objects.count() == 122
    assert alice.post(address).status_code == 302
    assert not ReferenceResult.objects.exists()
