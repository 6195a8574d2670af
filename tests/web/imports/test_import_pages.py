"""The pages of imports: a history is sent, previewed and started; others see nothing of it."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.models import Membership, Role
from orchestrator.measurements.ingest import forget_cached
from orchestrator.results.models import Point, Reading, ResultImport
from orchestrator.web.imports import forms
from tests.support.histories import build_data_js, detect_all, queue_content, run_imports
from tests.support.html_pages import get_text
from tests.support.world import World

GOLDEN = Path(__file__).parents[2] / "importers" / "golden"


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Any:
    forget_cached()
    yield
    forget_cached()


def post(client: Client, *files: tuple[str, bytes], **fields: str) -> Any:
    sent = [SimpleUploadedFile(name, content) for name, content in files]
    return client.post(reverse("import-new"), {"project": "server", "file": sent, **fields})


def text(client: Client, pk: UUID) -> str:
    answer = client.get(reverse("import", args=[pk]))
    assert answer.status_code == 200
    return get_text(answer)


def test_a_history_is_previewed_and_imported(world: World, alice: Client) -> None:
    before = Reading.objects.count()
    content = build_data_js([*world.shas, "e" * 40], names=["one", "two"])
    answer = post(alice, ("data.js", content))
    row = ResultImport.objects.get()
    assert answer["Location"] == reverse("import", args=[row.pk])
    assert "Reading the file…" in text(alice, row.pk)
    run_imports()
    page = text(alice, row.pk)
    for words in (
        "Ready to import", "Format github-action-benchmark", "Values 8 in 2 series",
        "Measured 2025-03-01 to 2025-03-04", "3 of 4 are in the repository of server",
        "pipeline 2 8 new", "1 commit with 2 values is unknown", "Change 3 " + "e" * 40,
        "Keep them as reported commits with their dates", "Import 8 values",
    ):  # fmt: skip
        assert words in page
    assert Reading.objects.count() == before
    answer = alice.post(reverse("import-start", args=[row.pk]), {"unknown_commits": "skip"})
    assert answer["Location"] == reverse("import", args=[row.pk])
    run_imports()
    page = text(alice, row.pk)
    assert "6 results are new." in page
    assert "Show the charts of pipeline" in page
    assert Reading.objects.count() == before + 6
    detect_all()
    chart = alice.get(reverse("history"), {"benchmark": "server/pipeline"})
    assert "Script: time" in get_text(chart)
    benchmark = alice.get(reverse("benchmark", args=["server", "pipeline"]))
    assert "This benchmark has no definition" in get_text(benchmark)
    assert "pipeline" in get_text(alice.get(reverse("benchmarks")))
    assert alice.get("/").status_code == 200


def test_charts_are_linked_only_for_benchmarks_with_results(world: World, alice: Client) -> None:
    unknown = "suite,metric,value,commit\nnone,script.x_s,1,{}\nsome,script.x_s,2,{}\n"
    content = unknown.format("e" * 40, world.shas[0]).encode()
    post(alice, ("old.csv", content))
    row = ResultImport.objects.get()
    run_imports()
    alice.post(reverse("import-start", args=[row.pk]), {"unknown_commits": "skip"})
    run_imports()
    page = text(alice, row.pk)
    assert "Show the charts of some" in page
    assert "Show the charts of none" not in page


def test_several_result_files_of_asv_are_one_history(world: World, alice: Client) -> None:
    golden = (GOLDEN / "asv.json").read_text()
    files = [
        (f"{sha[:8]}-py.json", golden.replace("4f1c0ffee" * 4 + "4f1c", sha).encode())
        for sha in world.shas
    ]
    index = ("benchmarks.json", b'{"requests.TimeParse.time_head": {"param_names": ["text"]}}')
    post(alice, *files, index)
    row = ResultImport.objects.get()
    assert row.name == "4 files.zip"
    run_imports()
    page = text(alice, row.pk)
    assert "Format asv" in page
    assert "3 of 3 are in the repository" in page


def test_a_discarded_history_leaves_nothing(world: World, alice: Client) -> None:
    post(alice, ("data.js", build_data_js(world.shas)))
    row = ResultImport.objects.get()
    run_imports()
    answer = alice.post(reverse("import-discard", args=[row.pk]), follow=True)
    assert "data.js was discarded. Nothing of it was imported." in get_text(answer)
    assert not ResultImport.objects.exists()


def test_a_file_that_cannot_be_read_fails_with_the_reason(world: World, alice: Client) -> None:
    post(alice, ("data.js", b"BENCHMARK_DATA = {"))
    row = ResultImport.objects.get()
    run_imports()
    page = text(alice, row.pk)
    assert "Failed" in page
    assert "not JSON" in page
    assert "Send a corrected file" in page


@pytest.mark.parametrize(
    ("files", "fields", "words"),
    [
        ([], {}, "This field is required."),
        ([("empty.js", b"")], {}, "The submitted file is empty."),
        ([("a.js", b"x")], {"project": "other"}, "Select a valid choice."),
        ([("a.js", b"x")], {"format": "excel"}, "Select a valid choice."),
        ([("a.js", b"x")], {"better": "up"}, "Select a valid choice."),
        ([("a.js", b"x" * 60)], {}, "a history has at most 50 B"),
    ],
)
def test_a_form_with_an_error_keeps_its_input(
    world: World,
    alice: Client,
    monkeypatch: pytest.MonkeyPatch,
    files: list[tuple[str, bytes]],
    fields: dict[str, str],
    words: str,
) -> None:
    monkeypatch.setattr(forms, "MAX_BYTES", 50)
    answer = post(alice, *files, benchmark="My name", **fields)
    assert answer.status_code == 422
    assert words in get_text(answer)
    assert 'value="My name"' in answer.content.decode()
    assert not ResultImport.objects.exists()


def test_a_start_without_a_choice_is_refused_on_the_page(world: World, alice: Client) -> None:
    post(alice, ("data.js", build_data_js(["e" * 40])))
    row = ResultImport.objects.get()
    run_imports()
    assert "Check that it is the right project." in text(alice, row.pk)
    address = reverse("import-start", args=[row.pk])
    assert "This field is required." in get_text(alice.post(address))
    refused = alice.post(address, {"unknown_commits": "skip"})
    assert refused.status_code == 422
    assert "No commit of the file is in the repository of server" in get_text(refused)
    assert alice.post(address, {"unknown_commits": "keep"}).status_code == 302
    again = alice.post(address, {"unknown_commits": "keep"})
    assert "only one that is ready can be started" in get_text(again)


def test_viewers_only_look_and_strangers_find_nothing(
    world: World, alice: Client, bob: Client, mallory: Client, tmp_path: Path
) -> None:
    row = queue_content(world.alice, build_data_js(world.shas), tmp_path)
    run_imports()
    page = text(bob, row.pk)
    assert "Values 3 in 1 series" in page
    assert "Import 3 values" not in page
    start, discard = (reverse(f"import-{name}", args=[row.pk]) for name in ("start", "discard"))
    for address in (start, discard):
        assert bob.post(address, {"unknown_commits": "keep"}).status_code == 403
        assert mallory.post(address, {"unknown_commits": "keep"}).status_code == 404
    assert post(bob, ("data.js", b"x")).status_code == 403
    assert mallory.get(reverse("import", args=[row.pk])).status_code == 404
    assert "data.js" not in get_text(mallory.get(reverse("imports")))
    answer = post(mallory, ("data.js", b"x"))
    assert answer.status_code == 422, "server is a project of the other team"
    assert ResultImport.objects.get().state == "ready"


def test_an_import_of_a_page_ends_with_the_membership_of_its_sender(
    world: World, alice: Client
) -> None:
    post(alice, ("data.js", build_data_js(world.shas)))
    row = ResultImport.objects.get()
    Membership.objects.filter(user=world.alice.user).update(role=Role.VIEWER)
    run_imports()
    row.refresh_from_db()
    assert row.state == "failed"
    assert "alice is a viewer" in row.faults[0][1]
    assert not Point.objects.filter(series__benchmark__slug="pipeline").exists()
