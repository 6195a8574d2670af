"""The runs of a report continue after an interruption: what is measured is not measured again."""

import json
import time
from pathlib import Path
from typing import Any

from devstack.demo_client import ApiError
from devstack.extra_runs import MOST_EXTRA_RUNS, measure_again, select_cases
from devstack.git import run_git
from devstack.report_runs import (
    RunRecord,
    cancel_others,
    list_wanted_runs,
    measure,
    plan_seconds,
)
from devstack.suite_repository import build_suite_repository
from orchestrator.benchmarks.choice import compile_condition

ADDED: dict[str, Any] = {
    "benchmark": "b",
    "host": "h",
    "version": 3,
    "repeats": 3,
    "parts": [{"cases": "x == 1", "commits": 1}, {"cases": "x == 2", "commits": 2}],
}
SHAS = ["a" * 40, "b" * 40]


class Server:
    """The runs of a Pitwall that ends each run at the next look; one may be interrupted."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.interrupt_at = 0
        #: The valid trials of each run by its number: pairs of x and the commit.
        self.valid: dict[int, list[tuple[int, str]]] = {}

    def get(self, path: str, **query: str) -> Any:
        if path == "/api/v1/runs":
            return {
                "runs": [each for each in self.runs.values() if each["state"] == query["state"]]
            }
        if path.endswith("/trials"):
            return self._list_trials(path.split("/")[-2], query)
        run_id = path.rpartition("/")[2]
        if run_id not in self.runs:
            raise ApiError("there is no such run")
        return dict(self.runs[run_id])

    def _list_trials(self, run_id: str, query: dict[str, str]) -> Any:
        """Return one valid trial in each page."""
        assert query["validity"] == "valid"
        valid, at = self.valid.get(int(run_id), []), int(query.get("cursor", 0))
        following = str(at + 1) if at + 1 < len(valid) else None
        trials = [
            {"case": {"key": f"x={x}", "parameters": {"x": x, "y": "a"}}, "commit": {"commit": sha}}
            for x, sha in valid[at : at + 1]
        ]
        return {"trials": trials, "next": following}

    def post(self, path: str, body: dict[str, Any]) -> Any:
        if path == "/api/v1/runs/plan":
            return {"seconds": 100.0 * (1 + len(body["contenders"]))}
        if path.endswith("/cancel"):
            self.runs[path.split("/")[-2]]["state"] = "cancelled"
            return {}
        if len(self.runs) + 1 == self.interrupt_at:
            raise KeyboardInterrupt
        run_id = str(len(self.runs))
        self.runs[run_id] = {
            "id": run_id, "state": "finished", "web_url": "", "message": "", "trials_total": 1,
            "body": body,
        }  # fmt: skip
        return {"id": run_id}


def test_a_second_command_continues_where_the_first_one_stopped(tmp_path: Path) -> None:
    server: Any = Server()
    wanted = list_wanted_runs(ADDED, SHAS)
    assert [each.body["cases"] for each in wanted] == ["x == 1", "x == 2"] * 3
    assert (wanted[0].body["baseline"], wanted[0].body["contenders"]) == (SHAS[1], [])
    assert (wanted[1].body["baseline"], wanted[1].body["contenders"]) == (SHAS[0], SHAS[1:])
    assert plan_seconds(server, RunRecord(None), wanted) == (900.0, 0)

    server.interrupt_at = 4
    path = tmp_path / "reports" / "suite.json"
    try:
        list(measure(server, RunRecord(path), wanted))
    except KeyboardInterrupt:
        server.interrupt_at = 0
    assert len(server.runs) == 3
    # One that was running goes on; one that nobody wants any more is cancelled.
    server.runs["2"]["state"] = "running"
    server.runs["x"] = {"id": "x", "state": "running"}
    again = RunRecord(path)
    cancel_others(server, [again])
    assert (server.runs["2"]["state"], server.runs["x"]["state"]) == ("running", "cancelled")
    server.runs["2"]["state"] = "finished"
    assert plan_seconds(server, again, wanted) == (500.0, 3)
    ended = list(measure(server, again, wanted))
    assert [each["id"] for each in ended][:3] == ["0", "1", "2"]
    assert len(server.runs) == 7
    assert len(list(measure(server, RunRecord(path), wanted))) == 6
    assert len(server.runs) == 7
    assert len(json.loads(path.read_text())) == 6


def test_a_failed_run_another_definition_and_another_commit_are_measured_again() -> None:
    server: Any = Server()
    record = RunRecord(None)
    list(measure(server, record, list_wanted_runs(ADDED, SHAS)))
    server.runs["0"]["state"] = "failed"
    del server.runs["1"]
    assert plan_seconds(server, record, list_wanted_runs(ADDED, SHAS))[1] == 4
    assert plan_seconds(server, record, list_wanted_runs({**ADDED, "version": 4}, SHAS))[1] == 0
    assert plan_seconds(server, record, list_wanted_runs(ADDED, ["c" * 40, "d" * 40]))[1] == 0


def test_cases_with_too_few_valid_trials_are_measured_again(tmp_path: Path) -> None:
    server: Any = Server()
    record = RunRecord(tmp_path / "suite.json")
    wanted = list_wanted_runs({**ADDED, "parts": [{"cases": "x < 9", "commits": 2}]}, SHAS)
    old, new = SHAS
    # 1 is valid everywhere, 2 lacks a trial of one commit, 3 is never valid, 4 lacks two.
    everywhere = [(1, old), (1, new), (2, old)]
    server.valid = {
        0: [*everywhere, (2, new), (4, old)],
        1: [*everywhere, (2, new)],
        2: [*everywhere],
        3: [(4, old), (4, old)],
        4: [(2, new)],
    }
    ended = list(measure(server, record, wanted))
    later = time.monotonic() + 1000
    extra = list(measure_again(server, record, wanted, ended, enough=3, until=later))
    assert [each["id"] for each in extra] == ["3", "4"]
    bodies = [server.runs[each]["body"] for each in ("3", "4")]
    assert bodies[0] == {**wanted[0].body, "cases": 'x in [2, 4] and y == "a"'}
    assert bodies[1] == {**wanted[0].body, "cases": 'x in [2] and y == "a"'}
    # The same command again measures nothing.
    kept = RunRecord(record.path)
    again = list(measure_again(server, kept, wanted, ended, enough=3, until=time.monotonic()))
    assert [each["id"] for each in again] == ["3", "4"]
    assert len(server.runs) == 5


def test_extra_runs_end_after_a_number_and_before_a_time() -> None:
    server: Any = Server()
    wanted = list_wanted_runs(ADDED, SHAS)[::2]
    server.valid = {0: [(1, SHAS[1])]}
    ended = list(measure(server, RunRecord(None), wanted))
    for seconds, runs in ((1e6, MOST_EXTRA_RUNS), (150.0, MOST_EXTRA_RUNS), (99.0, 0)):
        until = time.monotonic() + seconds
        extra = measure_again(server, RunRecord(None), wanted, ended, enough=5, until=until)
        assert len(list(extra)) == runs


def test_the_expression_of_extra_runs_selects_exactly_their_cases() -> None:
    cases = [
        {"system": system, "rate": rate, "tls": tls}
        for system in ("a-b", "c")
        for rate in (10, 2.5)
        for tls in (True, False)
    ]
    for chosen in (cases[:1], cases[1:6], cases[::3], cases):
        selects = compile_condition(select_cases(chosen))
        assert [case for case in cases if selects(case)] == chosen


def test_a_suite_with_a_history_has_its_earlier_commit(tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    before, after = build_suite_repository("api-vs-grpc", folder)
    assert "Uvicorn" in run_git(folder, "show", f"{before}:serve.py").splitlines()[0]
    assert "Hypercorn" in run_git(folder, "show", f"{after}:serve.py").splitlines()[0]
    changed = run_git(folder, "diff", "--name-only", before, after).split()
    assert changed == ["serve.py"]
    files = run_git(folder, "ls-files").split()
    assert "app.py" in files
    assert not {"report.yaml", "published.csv"} & set(files), (
        "a changed label measures nothing again"
    )
    assert build_suite_repository("api-vs-grpc", folder) == [before, after]
    assert len(build_suite_repository("protocols", tmp_path / "other")) == 1
