"""Large files of results: queued by the request, taken in by workers, each result once."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.test import Client

from orchestrator.accounts.models import ApiToken, AuditEntry, Membership, Role, User
from orchestrator.accounts.selectors import load_token_member
from orchestrator.core.issued_secrets import hash_secret
from orchestrator.measurements import bulk_import, import_steps, imports
from orchestrator.measurements.import_steps import import_some, prune_imports
from orchestrator.measurements.ingest import forget_cached
from orchestrator.results.models import ImportPart, Point, Reading, ResultImport
from tests.api.conftest import ApiClient
from tests.api.test_result_files import line, send
from tests.support.engine import ROOT, own_database_url
from tests.support.html_pages import element, elements, values
from tests.support.world import World

#: More than a request takes in by itself.
MANY = 2_100


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    forget_cached()
    yield
    forget_cached()


def content(count: int = MANY, **changes: Any) -> bytes:
    lines = (line(1 + number % 7, id=f"n{number}", **changes) for number in range(count))
    return "\n".join(lines).encode()


def queued(client: ApiClient, body: bytes) -> dict[str, Any]:
    answer = send(client, "results.jsonl", body)
    assert answer.status_code == 202, answer.content
    upload: dict[str, Any] = answer.json()
    assert answer["Location"] == upload["url"] == f"/api/v1/results/imports/{upload['id']}"
    return upload


def queued_lines(client: ApiClient, folder: Path, count: int = 60) -> ResultImport:
    """An import of a file that a request would have taken in by itself."""
    path = folder / "small.jsonl"
    path.write_bytes(content(count))
    member = load_token_member(client.secret)
    return imports.queue_import(member=member, path=path, project="", name=path.name)


def work() -> None:
    """As the tasks do it, until there is nothing left to do."""
    while import_some():
        pass


def read(client: ApiClient, pk: str) -> dict[str, Any]:
    answer = client.get(f"results/imports/{pk}")
    assert answer.status_code == 200
    report: dict[str, Any] = answer.json()
    return report


def test_a_large_file_is_imported_in_steps_and_once(
    world: World, alice: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_import, "BATCH", 500)
    monkeypatch.setattr(import_steps, "STEP_S", 0.0)
    first = queued(alice, content())
    assert (first["state"], first["total"], first["done"]) == ("queued", None, 0)
    assert not Reading.objects.exists()
    seen = []
    while import_some():
        now = read(alice, first["id"])
        seen.append((now["state"], now["total"], now["done"]))
    assert seen == [
        *[("running", MANY, done) for done in (0, 500, 1000, 1500, 2000)],
        ("done", MANY, MANY),
    ]
    assert Reading.objects.count() == MANY
    assert sum(Point.objects.values_list("trials", flat=True)) == MANY
    assert not ImportPart.objects.exists()
    assert AuditEntry.objects.filter(subject=f"results.jsonl: {MANY} new").count() == 1

    again = queued(alice, content())
    work()
    report = read(alice, again["id"])
    assert (report["accepted"], report["repeated"], report["errors"]) == (0, MANY, [])
    assert Reading.objects.count() == MANY
    listed = alice.get("results/imports").json()["imports"]
    assert [each["id"] for each in listed] == [again["id"], first["id"]]


def test_an_invalid_file_is_refused_at_upload_or_by_the_import(
    world: World, alice: ApiClient
) -> None:
    early = b"{}\n" + content()
    assert send(alice, "results.jsonl", early).json()["field"] == "line 1"
    upload = queued(alice, content() + b"\n{}\n" + content(10))
    work()
    report = read(alice, upload["id"])
    assert (report["state"], report["accepted"]) == ("failed", 0)
    assert report["errors"][0]["field"] == f"line {MANY + 1}"
    assert not Reading.objects.exists()

    taken = content() + b"\n" + line(1, id="n0", note="other").encode()
    upload = queued(alice, taken)
    work()
    report = read(alice, upload["id"])
    assert report["state"] == "failed"
    assert "the id 'n0'" in report["errors"][0]["detail"]


def test_concurrent_imports_of_a_team_are_limited_and_hidden_from_others(
    world: World, alice: ApiClient, mallory: ApiClient
) -> None:
    made = [queued(alice, content()) for _ in range(imports.MOST_GOING_ON)]
    refused = send(alice, "results.jsonl", content())
    assert refused.status_code == 409
    assert "unfinished imports" in refused.json()["detail"]
    assert mallory.get(f"results/imports/{made[0]['id']}").status_code == 404
    assert mallory.get("results/imports").json()["imports"] == []


def test_an_import_ends_with_its_token(world: World, alice: ApiClient) -> None:
    upload = queued(alice, content())
    reader = send(alice, "results.jsonl", line(1).encode())
    assert reader.status_code == 200
    ApiToken.objects.update(revoked_at=Now())
    work()
    result_import = ResultImport.objects.get(pk=upload["id"])
    assert result_import.state == "failed"
    assert "was revoked" in result_import.faults[0][1]


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ({"role": Role.VIEWER}, "alice is a viewer of"),
        ({"is_active": False}, "was deactivated"),
        ({}, "left the team"),
    ],
)
def test_each_import_step_checks_the_permission_of_the_sender(
    world: World,
    alice: ApiClient,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    lost: dict[str, Any],
    words: str,
) -> None:
    monkeypatch.setattr(bulk_import, "BATCH", 20)
    monkeypatch.setattr(import_steps, "STEP_S", 0.0)
    result_import = queued_lines(alice, tmp_path)
    for _ in ("checked", "one batch stored"):
        assert import_some()
    user = world.personas.alice.user
    if "role" in lost:
        Membership.objects.filter(user=user).update(**lost)
    elif lost:
        User.objects.filter(pk=user.pk).update(**lost)
    else:
        Membership.objects.filter(user=user).delete()
    work()
    result_import.refresh_from_db()
    assert (result_import.state, result_import.done) == ("failed", 20)
    assert words in result_import.faults[0][1]
    assert Reading.objects.count() == 20


def test_an_unexpected_error_is_reported_by_its_type_and_frees_the_claim(
    world: World, alice: ApiClient, settings: Any, tmp_path: Path
) -> None:
    result_import = queued_lines(alice, tmp_path)
    folder = Path(settings.DATA_DIR) / "imports"
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("not a folder")
    for _ in range(import_steps.MOST_TRIES):
        assert import_some()
        result_import.refresh_from_db()
        assert (result_import.state, result_import.claim) == ("running", None)
        assert not import_some(), "it waits for its next try"
        ResultImport.objects.update(claimed_until=Now() - timedelta(seconds=1))
    work()
    [error] = read(alice, str(result_import.pk))["errors"]
    assert "FileExistsError" in error["detail"]
    assert "worker ended" not in error["detail"]
    assert str(tmp_path) not in error["detail"], "members see no paths of the server"

    result_import = queued_lines(alice, tmp_path)
    import_some()
    folder.unlink()
    ResultImport.objects.update(claimed_until=None)
    work()
    result_import.refresh_from_db()
    assert (result_import.state, result_import.faults, result_import.accepted) == ("done", [], 60)


@pytest.mark.django_db(transaction=True)
def test_concurrent_workers_keep_the_limit_together(
    world: World, alice: ApiClient, mallory: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_steps, "MOST_AT_ONCE", 1)
    for client in (alice, mallory):
        token = ApiToken.objects.get(digest=hash_secret(client.secret))
        ResultImport.objects.create(
            team=token.team, sender=token.user, token=token, name="a.jsonl", size=1
        )
    second: list[bool] = []

    def claim() -> None:
        second.append(import_steps._claim_import() is not None)
        connection.close()

    thread = threading.Thread(target=claim)
    with transaction.atomic():
        assert import_steps._claim_import() is not None
        thread.start()
        give_up = time.monotonic() + 30
        while not second and not _is_waiting_for_lock() and time.monotonic() < give_up:
            thread.join(0.01)
    thread.join()
    assert second == [False]


def _is_waiting_for_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])


def test_an_import_that_kills_its_workers_is_abandoned(
    world: World, alice: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = queued(alice, content())

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(import_steps, "_check", die)
    for _ in range(import_steps.MOST_TRIES):
        with pytest.raises(KeyboardInterrupt):
            import_some()
        assert not import_some(), "somebody has it"
        ResultImport.objects.update(claimed_until=Now() - timedelta(seconds=1))
    assert import_some()
    report = read(alice, upload["id"])
    assert report["state"] == "failed"
    assert "import failed" in report["errors"][0]["detail"]


def test_ended_imports_and_files_of_killed_workers_are_deleted(
    world: World, alice: ApiClient, settings: Any
) -> None:
    upload = queued(alice, content())
    left = Path(settings.DATA_DIR) / "imports" / "left.jsonl"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"{}")
    os.utime(left, (1, 1))
    prune_imports()
    assert ResultImport.objects.count() == 1
    assert not left.exists()
    with import_steps._open_import_file(ResultImport.objects.get()) as used:
        os.utime(used, (1, 1))
        prune_imports()
        assert used.exists(), "a worker uses it"
    work()
    ResultImport.objects.update(ended_at=F("ended_at") - timedelta(days=31))
    prune_imports()
    assert alice.get(f"results/imports/{upload['id']}").status_code == 404


WORKER = """
import django; django.setup()
from orchestrator.measurements import bulk_import
from orchestrator.measurements.import_steps import import_some
bulk_import.BATCH = 20
while import_some(): pass
"""


@pytest.mark.django_db(transaction=True)
def test_a_killed_worker_loses_and_duplicates_nothing(
    world: World, alice: ApiClient, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_import, "BATCH", 20)
    upload = queued(alice, content())
    own = {
        "DATABASE_URL": own_database_url(),
        "PITWALL_DATA_DIR": str(settings.DATA_DIR),
        "PITWALL_ALLOW_LOCAL_REPOSITORIES": "1",
        "DJANGO_SETTINGS_MODULE": "orchestrator.config.settings",
    }
    result_import = ResultImport.objects.get(pk=upload["id"])
    for _ in range(3):
        before = result_import.done
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER], cwd=ROOT, env={**os.environ, **own}
        )
        give_up = time.monotonic() + 60
        while result_import.done <= before and time.monotonic() < give_up:
            result_import.refresh_from_db()
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        result_import.refresh_from_db()
        assert before < result_import.done
        ResultImport.objects.update(claimed_until=Now() - timedelta(seconds=1))
    assert result_import.done < MANY, "it was killed in the middle"
    work()
    result_import.refresh_from_db()
    assert (result_import.state, result_import.done, result_import.accepted) == ("done", MANY, MANY)
    assert Reading.objects.count() == MANY
    assert sum(Point.objects.values_list("trials", flat=True)) == MANY


def test_the_import_page_shows_progress_and_errors(world: World, alice: ApiClient) -> None:
    queued(alice, content())
    client = Client()
    client.force_login(world.personas.alice.user)
    page = client.get("/imports/").content.decode()
    assert "results.jsonl" in page
    assert "every 2s" in values(page, "[hx-trigger]", "hx-trigger")
    work()
    queued(alice, content() + b"\n{}")
    work()
    page = client.get("/imports/").content.decode()
    assert elements(element(page, "#imports"), "[hx-trigger]") == []
    assert re.search(r"2\W?100", page)
    assert "line 2101" in page
