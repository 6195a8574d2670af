"""Data that prepare steps create, and files of the definition, measured for real."""

from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

from orchestrator.runs.models import Run, Trial
from tests.support.engine import Engine, assert_measured, server
from tests.support.factories import (
    Personas,
    make_definition,
    make_project,
    make_run,
    make_shared_host,
)
from tests.support.journals import read_journals

pytestmark = pytest.mark.engine

#: Answers with the file of the definition and the rows of the seeded database.
SERVER = server(
    body="ANSWER",
    start="from seed import read_rows",
)["server.py"].replace("'ANSWER'", "(read_rows())")
SEED = dedent(
    """\
    import os, sqlite3, sys

    def read_rows():
        rows = sqlite3.connect(os.environ["DATABASE"]).execute("SELECT text FROM rows").fetchall()
        return open(os.environ["GREETING"]).read() + ",".join(text for (text,) in rows)

    if __name__ == "__main__":
        with sqlite3.connect(os.environ["DATABASE"]) as database:
            database.execute("CREATE TABLE IF NOT EXISTS rows (text)")
            database.execute("INSERT INTO rows VALUES (?)", [sys.argv[1]])
        # Outside of all folders of the job, so that it counts every run.
        with open(sys.argv[2], "a") as count:
            count.write(sys.argv[1] + "\\n")
        print("seeded", sys.argv[1])
    """
)
DEFINITION = dedent(
    """\
    version: 1
    title: Rows
    files: {greeting/en.txt: "Hello, "}
    subject:
      env:
        DATABASE: "{job_data}/rows.db"
        GREETING: "{files}/greeting/en.txt"
      start: ["{python}", server.py, --port, "{port}"]
      ready: {path: /, body: "Hello, one", timeout_s: 10}
    prepare:
      - {run: ["{python}", seed.py, one, COUNT], each: job, after: build, timeout_s: 20}
      - run: ["{python}", seed.py, two, COUNT]
        each: commit
        env: {DATABASE: "{commit_data}/rows.db"}
      - run: ["{python}", -c, "import urllib.request as r; r.urlopen('http://{bind}:{port}/').read();
              open('COUNT', 'a').write('three\\\\n')"]
        after: server
        timeout_s: 10
    load: {path: /, connections: 2, duration_s: 0.5, warmup_s: 0.2}
    rounds: 2
    cooldown_s: 0
    """
)
FAILING = dedent(
    """\
    version: 1
    title: Failures
    subject:
      start: ["{python}", server.py, --port, "{port}"]
    prepare:
      - run: ["{python}", -c, "import time;
              print(chr(27) + '[31mno table rows', flush=True); {how}"]
        timeout_s: 1
    load: {path: /, connections: 2, duration_s: 0.5, warmup_s: 0.2}
    matrix: {how: ["raise SystemExit(3)", "time.sleep(60)"]}
    rounds: 2
    cooldown_s: 0
    """
)


def measure(team: Personas, folder: Path) -> tuple[Run, Run]:
    """Runs of two commits with data, and of one whose steps fail."""
    version = {"server.py": SERVER, "seed.py": SEED}
    versions = [version, {**version, "README": "the same"}]
    project, shas = make_project(team.alice, folder / "origin", versions)
    source = DEFINITION.replace("COUNT", str(folder / "count"))
    make_definition(team.alice, project, source=source)
    make_definition(team.alice, project, slug="failing", source=FAILING)
    make_shared_host(team.alice)
    failing = make_run(team.alice, shas[:1], benchmark="failing")
    return make_run(team.alice, shas), failing


def test_steps_prepare_data_and_their_failures_are_explained(
    engine: Engine, team: Personas, tmp_path: Path
) -> None:
    run, failing = measure(team, tmp_path)
    assert_measured(engine.finish(run))
    check_measured(run, Counter((tmp_path / "count").read_text().split()))
    check_journals(engine)
    check_failed(engine.finish(failing))


def check_measured(run: Run, counts: Counter[str]) -> None:
    trials = list(Trial.objects.filter(job__run=run).order_by("position"))
    assert {trial.state for trial in trials} == {"measured"}
    assert len(trials) == 4
    assert counts == {"one": 1, "two": 2, "three": 4}
    steps = [trial.provenance["prepare"] for trial in trials]
    assert [each["runs"] for each in steps[0]] == [1, 1, 1]
    assert [sum(each["runs"] for each in column) for column in zip(*steps, strict=True)] == [
        1, 2, 4,
    ]  # fmt: skip
    # All trials show how long the data took that they use.
    assert len({each[0]["seconds"] for each in steps}) == 1
    assert all(0 < one["seconds"] < 20 for each in steps for one in each)
    assert {trial.artifacts.filter(name="prepare.log").count() for trial in trials} == {1}
    (job,) = run.jobs.all()
    assert job.expected_s == pytest.approx(20 + 2 * 60 + sum(each.expected_s for each in trials))


def check_journals(engine: Engine) -> None:
    (work_dir,) = (engine.data_dir / "hosts").iterdir()
    events = [event for step in read_journals(work_dir) for event in step.events]
    prepared = Counter(event["each"] for event in events if event["event"] == "prepared")
    assert prepared == {"job": 1, "commit": 2, "trial": 4}


def check_failed(run: Run) -> None:
    assert run.state == "failed"
    trials = Trial.objects.filter(job__run=run).order_by("position")
    failed = [trial for trial in trials if trial.state == "failed"]
    # The host is not to blame: no attempt is repeated, and the second round is skipped.
    assert [trial.reasons for trial in failed] == [["prepare_failed"]] * 2
    assert {trial.state for trial in trials} == {"failed", "skipped"}
    assert set(run.jobs.values_list("attempt", flat=True)) == {1}
    messages = "\n".join(sorted(trial.message for trial in failed))
    assert "ended with 3\nno table rows" in messages
    assert "took longer than 1 s\nno table rows" in messages
    assert "\x1b" not in messages
