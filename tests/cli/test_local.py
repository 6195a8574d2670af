"""`pitwall local` for real: agent, oha and verdict, and neither a server nor a database."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.engine import ROOT
from tests.support.factories import DEFINITION, make_repository
from tests.support.lfs import build_pointer
from tests.support.programs import tool

HELLO = (ROOT / "agents" / "suites" / "hello" / "server.py").read_text()
SLOWER = HELLO.replace("WORK = 50", "WORK = 1000")
SHORT = DEFINITION.replace("duration_s: 0.6", "duration_s: 0.4")


def local(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    nowhere = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "PITWALL_TOKEN": "pw_secret"}
    return subprocess.run(
        [sys.executable, ROOT / "pitwall", "local", "bench.yaml", *words], cwd=folder, text=True,
        capture_output=True, env={**os.environ, **nowhere, **environment}, check=False,
    )  # fmt: skip


@pytest.mark.engine
def test_a_local_run_until_decided_fails_on_a_regression(tmp_path: Path) -> None:
    folder, kept = tmp_path / "repository", tmp_path / "kept"
    make_repository(folder, [{"server.py": HELLO}, {"server.py": SLOWER, "bench.yaml": SHORT}])
    words = ("--baseline", "merge-base:main", "--until", "decided", "--rounds", "10")
    words += ("--json", "--shared", "--keep", str(kept))
    done = local(folder, *words, PITWALL_OHA=str(tool("oha")))
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["verdict"] == "regressed"
    (case,) = report["cases"]
    metrics = {each["metric"]: each for each in case["metrics"]}
    low, high = metrics["requests.rate"]["interval"]
    assert low < metrics["requests.rate"]["change"] < high < 0
    assert metrics["cpu.seconds_per_1k"]["verdict"] == "regressed"
    assert "FAILED: connections 4 on" in done.stderr
    # It ended at a planned look, and every trial's raw files are there.
    rounds = len(list(kept.glob("jobs/*/*")))
    assert f"round {rounds} of at most 10: connections 4" in done.stderr
    assert any(f"after {rounds} blocks: regressed" in note for note in report["notes"])
    assert rounds in (5, 7, 10)
    assert 5 <= metrics["requests.rate"]["blocks"] <= rounds
    assert len(list(kept.glob("jobs/*/*/trials/*/result.json"))) == 2 * rounds
    assert "pw_secret" not in "".join(each.read_text() for each in kept.glob("jobs/*/*/plan.json"))


@pytest.mark.parametrize(
    ("source", "words", "message"),
    [
        (SHORT, ["--contender", "nosuch"], "nosuch is not a commit"),
        (SHORT.replace("path: /hello", "pth: /hello"), [], "subject.ready.pth"),
        (SHORT, ["--checkout", "/"], "needs a checkout of Pitwall"),
        (SHORT, ["--until", "decided"], "give --baseline or --merge-base"),
        (SHORT, ["--baseline", "newest-measured:main"], "only a server knows"),
    ],
)
def test_a_local_run_reports_what_it_cannot_measure(
    tmp_path: Path, source: str, words: list[str], message: str
) -> None:
    make_repository(tmp_path / "repository", [{"server.py": HELLO, "bench.yaml": source}])
    done = local(tmp_path / "repository", *words)
    assert_refused(done, message)


def test_a_local_run_reports_missing_files_of_git_lfs(tmp_path: Path) -> None:
    files = {"server.py": HELLO, "bench.yaml": SHORT, "model.bin": build_pointer(b"model")}
    make_repository(tmp_path / "repository", [files])
    done = local(tmp_path / "repository", PITWALL_OHA=str(tool("oha")))
    assert_refused(done, "files of Git LFS of the commit")


def assert_refused(done: subprocess.CompletedProcess[str], message: str) -> None:
    assert done.returncode == 2
    assert message in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
