"""The failed cases of a run, with the last output of their server, build or load tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .client import Client
from .errors import RefusedError
from .terminal import clean_text, cut_tail

#: The server stores more; a build shows the last output of so many cases.
MAX_CASES, MAX_LINES, MAX_CHARACTERS = 10, 20, 4000
NO_DATA_STATE = "no_data"
SERVER_LOG = "server.log"


def load_failed_cases(client: Client, run: Any) -> list[dict[str, Any]]:
    """Return each case and commit with a failed trial; all invalid ones if the run has no data.

    Each has `case`, `host`, `commit`, `round`, `trial` (its address in the API), `reason` and
    `output`, whose control characters are removed. There are at most MAX_CASES.
    """
    trials: list[Any] = []
    if any(job["trials_failed"] for job in run["jobs"]):
        trials += _list_trials(client, run, {"state": "failed", "invalid": "true"})
    if run["state"] == NO_DATA_STATE:
        trials += _list_trials(client, run, {"validity": "invalid"})
    newest: dict[tuple[str, ...], Any] = {}
    for trial in sorted(trials, key=lambda each: str(each["ended_at"] or ""), reverse=True):
        key = (trial["case"]["key"], str(trial["host"]), trial["commit"]["commit"])
        newest.setdefault(key, trial)
    return [_describe_trial(client, trial) for trial in list(newest.values())[:MAX_CASES]]


def render_failed_cases(cases: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines for each case: what failed and where, and the output, indented."""
    for each in cases:
        on = f" on {each['host']}" if each["host"] else ""
        yield f"failed: {each['case']}{on}, commit {each['commit']}: {each['reason']}"
        for line in each["output"].splitlines():
            yield f"  | {line}"
    if len(cases) == MAX_CASES:
        yield f"at most {MAX_CASES} failed cases are shown; the page of the run shows all"


def _list_trials(client: Client, run: Any, query: dict[str, str]) -> list[Any]:
    """Return one page: a run abandons a case after some failures, and only MAX_CASES count."""
    page = client.get(f"runs/{run['id']}/trials", {**query, "limit": 200})
    return list(page["trials"])


def _describe_trial(client: Client, trial: Any) -> dict[str, Any]:
    reason, _, output = clean_text(trial["message"]).partition("\n")
    if trial["state"] != "failed":
        output = _load_server_log(client, trial)
    if not reason:
        reason = clean_text("; ".join(map(str, trial["reasons"])))
    return {
        "case": clean_text(trial["case"]["label"]) or "the only case",
        "host": trial["host"],
        "commit": trial["commit"]["short"],
        "round": trial["round"],
        "trial": trial["url"],
        "reason": cut_tail(reason, lines=1, characters=MAX_CHARACTERS),
        "output": cut_tail(output, lines=MAX_LINES, characters=MAX_CHARACTERS),
    }


def _load_server_log(client: Client, trial: Any) -> str:
    """Return the output of a trial's server; empty if it was not kept."""
    try:
        answer = client.ask("GET", f"trials/{trial['id']}/artifacts/{SERVER_LOG}")
    except RefusedError:
        return ""
    return clean_text(answer.body.decode("utf-8", "replace"))
