"""The runs of a report continue after an interruption: what is measured is not measured again."""

import json
from pathlib import Path
from typing import Any

from devstack.demo_client import ApiError
from devstack.git import run_git
from devstack.report_runs import (
    RunRecord,
    cancel_others,
    list_wanted_runs,
    measure,
    plan_seconds,
)
from devstack.suite_repository import build_suite_repository

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

    def get(self, path: str, **query: str) -> Any:
        if path == "/api/v1/runs":
            return {
                "runs": [each for each in self.runs.values() if each["state"] == query["state"]]
            }
        run_id = path.rpartition("/")[2]
        if run_id not in self.runs:
            raise ApiError("there is no such run")
        return dict(self.runs[run_id])

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
