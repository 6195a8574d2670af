"""Files of finished results, sent through the API."""

import gzip
import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from orchestrator.api.routers import results as router
from orchestrator.measurements import result_files
from orchestrator.measurements.ingest import forget_cached
from orchestrator.measurements.result_files import Bounds
from orchestrator.results.models import Reading
from tests.api.conftest import ApiClient
from tests.support.world import World


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    forget_cached()


def line(number: int, **changes: Any) -> str:
    fields = {
        "benchmark": "hello",
        "host": "ci-7",
        "commit": f"{number:040x}",
        "metrics": {"requests.rate": 1000.0 + number},
        "id": f"n{number}",
        **changes,
    }
    return json.dumps(fields)


def send(client: ApiClient, name: str, content: bytes, query: str = "") -> Any:
    return Client(enforce_csrf_checks=True).post(
        f"/api/v1/results/files{query}",
        {"file": SimpleUploadedFile(name, content)},
        headers={"Authorization": f"Bearer {client.secret}"},
    )


def test_a_file_is_imported_once(world: World, alice: ApiClient) -> None:
    content = "\n".join(line(number) for number in range(1, 30)).encode()
    first = send(alice, "results.jsonl", content, "?project=server")
    again = send(alice, "results.jsonl.gz", gzip.compress(content))
    assert first.json() == {"accepted": 29, "repeated": 0}
    assert again.json() == {"accepted": 0, "repeated": 29}
    provenance = Reading.objects.order_by("commit__sha")[0].provenance
    assert provenance == {"token": "file results.jsonl", "id": "n1"}


def test_an_error_is_reported_with_its_line(world: World, alice: ApiClient) -> None:
    content = "\n".join([line(1), "{", line(2, metrics={})]).encode()
    answer = send(alice, "results.jsonl", content)
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == ["line 2", "line 3"]
    assert not Reading.objects.exists()


def test_a_file_that_is_too_large_is_refused(
    world: World, alice: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "UPLOAD", Bounds(results=2))
    many = "\n".join(line(number) for number in range(1, 4)).encode()
    assert "at most 2 results" in send(alice, "r.jsonl", many).json()["detail"]
    monkeypatch.setattr(result_files, "MOST_BYTES_A_LINE", 4096)
    bomb = gzip.compress(b" " * 1_000_000)
    assert "line 1: longer than 4 KiB" in send(alice, "r.jsonl.gz", bomb).json()["detail"]
    assert "cannot be read" in send(alice, "r.jsonl.gz", b"not packed").json()["detail"]


def test_viewers_and_strangers_cannot_upload_files(
    world: World, bob: ApiClient, mallory: ApiClient
) -> None:
    content = line(1).encode()
    assert send(bob, "r.jsonl", content).status_code == 403
    assert send(mallory, "r.jsonl", content).status_code == 422
    assert not Reading.objects.exists()
