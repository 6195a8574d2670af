"""Import, export and the list of hosts."""

import gzip
import json
import threading

import pytest
from django.db import connection
from django.test import Client

from orchestrator.measurements.import_steps import import_some
from orchestrator.measurements.ingest import forget_cached
from orchestrator.results.models import Reading

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
    assert [each["name"] for each in json.loads(out)] == ["here"], err
