"""Import, export and the list of hosts."""

import contextlib
import gzip
import json
import threading
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client

from orchestrator.benchmarks.models import Fetch
from orchestrator.measurements.import_steps import import_some
from orchestrator.measurements.ingest import forget_cached
from orchestrator.results.models import Reading
from tests.support.fetches import run_fetches
from tests.support.histories import build_data_js

pytestmark = pytest.mark.django_db(transaction=True)


def test_files_are_uploaded_once(pitwall, world, tmp_path):
    line = {"benchmark": "hello", "host": "ci-7", "commit": world.shas[0], "id": "one",
            "parameters": {"connections": 4}, "metrics": {"requests.rate": 91250.5}}  # fmt: skip
    file = tmp_path / "results.jsonl.gz"
    file.write_bytes(gzip.compress(json.dumps(line).encode()))
    assert pitwall("import", str(file), "--project", "server").out.endswith(
        "1 new, 0 already stored\n"
    )
    again = pitwall("import", str(file), "--project", "server")
    assert (again.status, again.out) == (0, f"{file}: 0 new, 1 already stored\n")
    assert Reading.objects.count() == 1
    broken = tmp_path / "broken.jsonl"
    broken.write_text(json.dumps({**line, "metrics": {"no.such": 1}}))
    refused = pitwall("import", str(broken), "--project", "server")
    assert (refused.status, "no.such" in refused.err) == (2, True)
    assert "its name must end with one of" in pitwall("import", __file__).err


def test_an_import_of_a_large_file_is_followed_until_it_ends(pitwall, world, tmp_path):
    """The worker of the server is a thread here, which does what its task does."""
    forget_cached()
    lines = [
        {"benchmark": "hello", "host": "ci-7", "commit": "b" * 40, "id": str(number),
         "metrics": {"requests.rate": 1.0}}
        for number in range(2_050)
    ]  # fmt: skip
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text("\n".join(map(json.dumps, lines)))
    bad.write_text("\n".join(map(json.dumps, [*lines, {}])))
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(0.05):
            import_some()
        connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        done = pitwall("import", str(good), "--project", "server")
        refused = pitwall("import", str(bad), "--project", "server")
    finally:
        ended.set()
        worker.join()
    assert (done.status, done.out) == (0, f"{good}: 2050 new, 0 already stored\n")
    assert "good.jsonl: checking" in done.err
    assert refused.status == 2
    assert "bad.jsonl was not imported" in refused.err
    assert "line 2051" in refused.err


def test_trials_and_definitions_are_exported(pitwall, world, tmp_path):
    run, file = world.measure_run(1000, 800), tmp_path / "trials.jsonl"
    assert pitwall("export", "trials", str(run.pk), "-o", str(file)).status == 0
    trials = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(trials) == 10
    assert {each["measurements"][0]["metric"] for each in trials} == {"requests.rate"}
    assert pitwall("export", "definition", "server/hello").out.startswith(
        "version: 1\ntitle: Hello"
    )


def test_hosts_are_listed(pitwall, world):
    lines = pitwall("hosts").out.splitlines()
    assert lines[0].split() == ["host", "state", "profile", "now"]
    assert lines[2].split() == ["here", "ready", "any", "free"]


def test_every_server_offers_its_own_command_line(start, world):
    """Also to somebody who has not signed in; it runs on the oldest Python that it promises."""
    answer = Client().get("/cli/pitwall")
    assert (answer.status_code, answer.content[:23]) == (200, b"#!/usr/bin/env python3\n")
    assert Client().post("/cli/pitwall").status_code == 405
    listed = start("hosts", "--json")
    out, err = listed.communicate(timeout=60)
    assert [each["name"] for each in json.loads(out)["hosts"]] == ["here"], err


@contextlib.contextmanager
def working():
    """The workers of the server are a thread here, which does what their tasks do."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(0.05):
            import_some()
            if Fetch.objects.exclude(next_at=None).exists():
                run_fetches()
        connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        ended.set()
        worker.join()


def test_a_history_is_imported_with_its_preview(pitwall, world, tmp_path):
    forget_cached()
    file = tmp_path / "data.js"
    file.write_bytes(build_data_js([*world.shas, "e" * 40], names=["one", "two"]))
    words = ("import", "--as-history", "--project", "server", str(file))
    with working():
        preview = pitwall(*words, "--preview")
        assert (preview.status, Reading.objects.count()) == (0, 0)
        done = pitwall(*words, "--unknown-commits", "skip")
        again = pitwall(*words)
    assert preview.out.splitlines() == [
        f"{file}: github-action-benchmark, 8 values in 2 series, 2025-03-01 to 2025-03-04",
        "  server/pipeline (new): 2 series, 8 values",
        "  commits: 3 of 4 are known",
        f"    unknown: {'e' * 40} Change 3",
        "  skipped: 0 results without a value, 8 values about the spread of others",
    ]
    assert (done.status, done.out.splitlines()[-1]) == (0, f"{file}: 6 new, 0 already stored")
    assert again.out.splitlines()[-1] == f"{file}: 2 new, 6 already stored"
    assert Reading.objects.count() == 8


def test_a_folder_of_asv_is_one_history(pitwall, world, tmp_path):
    forget_cached()
    golden = (Path(__file__).parents[1] / "importers" / "golden" / "asv.json").read_text()
    folder = tmp_path / "results"
    (folder / "bench1").mkdir(parents=True)
    for sha in world.shas:
        content = golden.replace("4f1c0ffee" * 4 + "4f1c", sha)
        (folder / "bench1" / f"{sha[:8]}-py.json").write_text(content)
    (folder / "bench1" / "machine.json").write_text("{}")
    with working():
        done = pitwall("import", "--as-history", "--project", "server", str(folder))
    assert "asv, 6 values in 2 series" in done.out
    assert done.out.endswith("6 new, 0 already stored\n")


def test_a_history_that_cannot_be_imported_says_why(pitwall, world, tmp_path):
    file = tmp_path / "data.js"
    file.write_bytes(build_data_js(["e" * 40, "f" * 40]))
    assert "needs --project" in pitwall("import", "--as-history", str(file)).err
    words = ("import", "--as-history", "--project", "server")
    assert "there is no file" in pitwall(*words, str(tmp_path / "none")).err
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "has no .json file" in pitwall(*words, str(empty)).err
    broken = tmp_path / "broken.js"
    broken.write_text("BENCHMARK_DATA = {")
    with working():
        refused = pitwall(*words, str(file))
        failed = pitwall(*words, str(broken))
    assert refused.status == 2
    assert "no commit of the file is in the repository of server" in refused.err
    assert "broken.js was not imported" in failed.err
    assert "not JSON" in failed.err
    assert not Reading.objects.exists()
