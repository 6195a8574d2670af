"""The pages of reference results: their sources, what each says, and where to find a figure."""

from typing import Any
from uuid import UUID

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from orchestrator.reports.models import ReferenceResult
from orchestrator.reports.reference_import import NewImport, import_results
from orchestrator.web.references import forms
from tests.support.factories import Personas
from tests.support.html_pages import get_text

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
    return get_text(answer)


def test_sources_are_listed(source: UUID, alice: Client, bob: Client, mallory: Client) -> None:
    for client in (alice, bob):
        page = text(client, reverse("references"))
        assert "A report https://example.org/report csv 122 1" in page
    assert "Nothing imported yet" in text(mallory, reverse("references"))


def test_reference_results_are_shown_with_units_and_unknown_values(
    source: UUID, bob: Client
) -> None:
    address = reverse("reference", args=[source])
    page = text(bob, address)
    assert "overhead system flask small-box latency.p99 4.50 ms v1 –" in page
    assert "system <b>axum</b> small-box latency.p99 unknown v1" in page
    assert "the source has n/a" in bob.get(address).content.decode()
    assert "not measured here" in page
    assert "Page 1 of 2" in page


def test_reference_results_are_found_by_words(source: UUID, alice: Client) -> None:
    page = text(alice, f"{reverse('reference', args=[source])}?q=FLASK+p99")
    assert "1 of them match" in page
    assert "axum" not in page
    paged = alice.get(f"{reverse('reference', args=[source])}?q=big-box&page=1").content.decode()
    assert "?page=2&amp;q=big-box" in paged
    assert "No results match" in text(alice, f"{reverse('reference', args=[source])}?q=zzz")


def test_a_stranger_finds_no_reference_results(
    source: UUID, mallory: Client, client: Client
) -> None:
    assert mallory.get(reverse("reference", args=[source])).status_code == 404
    assert client.get(reverse("reference", args=[source])).status_code == 302


def test_a_member_removes_a_source_with_its_reference_results(
    source: UUID, alice: Client, bob: Client, mallory: Client
) -> None:
    address = reverse("reference-remove", args=[source])
    assert bob.post(address).status_code == 403
    assert mallory.post(address).status_code == 404
    assert address not in bob.get(reverse("reference", args=[source])).content.decode()
    assert "Values 122" in text(alice, address)
    assert ReferenceResult.objects.count() == 122
    assert alice.post(address).status_code == 302
    assert not ReferenceResult.objects.exists()


def uploaded(content: bytes = CSV.encode(), **changes: str) -> dict[str, Any]:
    file = SimpleUploadedFile("figures.csv", content)
    return {"file": file, "format": "csv", **changes}


def test_a_repeated_upload_duplicates_nothing(alice: Client) -> None:
    address = reverse("reference-import")
    assert "multipart/form-data" in alice.get(address).content.decode()
    for summary in ("2 added, 0 changed, 0", "0 added, 0 changed, 2"):
        answer = alice.post(address, uploaded(origin="by hand"), follow=True)
        page = answer.content.decode()
        assert f"2 values read, 1 of them unknown: {summary} unchanged." in page
        assert "figures.csv</h1>" in page
    assert ReferenceResult.objects.count() == 2


def test_an_upload_fills_in_missing_fields(alice: Client) -> None:
    content = b"metric,value\nlatency.p99,-7\nx,-7\ny,3\n"
    given = {
        "source": "By hand", "suite": "own", "profile": "box", "commit": "v2",
        "measured_at": "2026-01-31 12:00", "unknown": "-7, -1",
    }  # fmt: skip
    alice.post(reverse("reference-import"), uploaded(content, **given))
    results = {each.metric: each for each in ReferenceResult.objects.all()}
    assert {name: each.value for name, each in results.items()} == {
        "latency.p99": None, "x": None, "y": 3,
    }  # fmt: skip
    result = results["y"]
    assert (result.suite, result.environment, result.commit, result.source.name) == (
        "own", "box", "v2", "By hand",
    )  # fmt: skip
    assert result.measured_at.isoformat() == "2026-01-31T12:00:00+00:00"


@pytest.mark.parametrize(
    ("content", "changes", "words"),
    [
        (b"metric,value\nx,much\n", {}, "Line 2, value: expected a number"),
        (b"metric,value\n", {}, "This file has no reference results"),
        (b"", {}, "The submitted file is empty"),
        (CSV.encode(), {"format": "asv"}, "JSON"),
        (CSV.encode(), {"format": "excel"}, "Select a valid choice"),
        (
            CSV.encode(),
            {"unknown": "none"},
            "Expected numbers separated by commas, such as -1, 0; got none.",
        ),
        (CSV.encode(), {"source": "x" * 101}, "at most 100 characters"),
    ],
)
def test_errors_of_an_upload_are_reported(
    content: bytes, changes: dict[str, str], words: str, alice: Client
) -> None:
    answer = alice.post(reverse("reference-import"), uploaded(content, **changes))
    assert answer.status_code == 422
    assert words in get_text(answer)
    assert not ReferenceResult.objects.exists()


def test_the_size_of_an_upload_is_limited(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MAX_UPLOAD_BYTES", 10)
    answer = alice.post(reverse("reference-import"), uploaded())
    assert answer.status_code == 422
    assert "Use manage.py import_results" in answer.content.decode()


def test_a_member_imports_the_reference_results_of_a_suite(alice: Client, bob: Client) -> None:
    assert "Import its results" in alice.get(reverse("references")).content.decode()
    assert "Import its results" not in bob.get(reverse("references")).content.decode()
    address = reverse("reference-catalogue")
    answer = alice.post(address, {"suite": "protocols"}, follow=True)
    assert "24 values read, 0 of them unknown: 24 added" in answer.content.decode()
    listed = text(alice, reverse("references"))
    assert (
        "HTTP protocols of an object server, the report protocols imported Import again" in listed
    )
    assert "Python HTTP clients, the report http-clients Import its results" in listed
    assert alice.post(address, {"suite": "../hello"}).status_code == 404
    assert alice.get(address).status_code == 405


def test_a_viewer_cannot_import(bob: Client, client: Client) -> None:
    assert bob.post(reverse("reference-import"), uploaded()).status_code == 403
    assert bob.post(reverse("reference-catalogue"), {"suite": "protocols"}).status_code == 403
    assert client.post(reverse("reference-import"), uploaded()).status_code == 302
    assert not ReferenceResult.objects.exists()
