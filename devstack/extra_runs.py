"""Extra runs of a report: they measure cases with too few valid trials again.

Cells with enough valid trials do not use suspect ones. The values of the trials do not matter for
the selection, so it does not bias them.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from devstack.demo_client import Client
from devstack.report_runs import RunRecord, WantedRun, measure_run, plan_seconds

#: The most extra runs of each part of a suite.
MOST_EXTRA_RUNS = 20
#: The API accepts no longer expressions.
MOST_CHARACTERS = 2_000

Parameters = Mapping[str, str | int | float | bool]


def measure_again(
    client: Client,
    record: RunRecord,
    runs: Sequence[WantedRun],
    ended: Sequence[Mapping[str, Any]],
    *,
    enough: int,
    until: float,
) -> Iterator[dict[str, Any]]:
    """Measure cases with fewer than `enough` valid trials again; yield each run when it has ended.

    `ended` are the runs that `runs` became. A case without any valid trial is not repeated, because
    it usually has a lasting reason, such as shared CPUs. No run starts that would end after
    `until`, a time of `time.monotonic`.
    """
    parts: dict[str, list[str]] = defaultdict(list)
    for wanted, run in zip(runs, ended, strict=True):
        parts[json.dumps(wanted.body)].append(run["id"])
    for text, ids in parts.items():
        body = json.loads(text)
        for number in range(1, MOST_EXTRA_RUNS + 1):
            cases = _find_cases(client, ids, enough)
            if not cases:
                break
            wanted = _build_extra_run(runs, body, cases, number)
            planned_s, ended_earlier = plan_seconds(client, record, [wanted])
            if not ended_earlier and time.monotonic() + planned_s > until:
                return
            head = f"{body['benchmark']}, extra run {number} of at most {MOST_EXTRA_RUNS}"
            run = measure_run(client, record, wanted, head)
            ids.append(run["id"])
            yield run


def select_cases(cases: Sequence[Parameters]) -> str:
    """Return the expression that selects these cases; cases have the same parameters."""
    groups: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for case in cases:
        (name, value), *others = case.items()
        groups[name, *others].append(value)
    return " or ".join(
        " and ".join(
            [
                f"{name} in {json.dumps(values)}",
                *(f"{other} == {json.dumps(value)}" for other, value in others),
            ]
        )
        for (name, *others), values in groups.items()
    )


def _find_cases(client: Client, run_ids: Sequence[str], enough: int) -> list[Parameters]:
    """Return the cases that have valid trials at a commit, but fewer than `enough` of them."""
    cases: dict[str, Parameters] = {}
    numbers: Counter[tuple[str, str]] = Counter()
    for trial in (trial for run_id in run_ids for trial in _list_valid_trials(client, run_id)):
        cases[trial["case"]["key"]] = trial["case"]["parameters"]
        numbers[trial["case"]["key"], trial["commit"]["commit"]] += 1
    few = {key for (key, _), number in numbers.items() if number < enough}
    return [parameters for key, parameters in cases.items() if key in few]


def _list_valid_trials(client: Client, run_id: str) -> Iterator[Mapping[str, Any]]:
    query = {"validity": "valid", "limit": "200"}
    while True:
        page = client.get(f"/api/v1/runs/{run_id}/trials", **query)
        yield from page["trials"]
        if not page["next"]:
            return
        query["cursor"] = page["next"]


def _build_extra_run(
    runs: Sequence[WantedRun], body: Mapping[str, Any], cases: Sequence[Parameters], number: int
) -> WantedRun:
    """Return the run of these cases, or of the whole part if their expression is too long."""
    first = next(run for run in runs if run.body == body)
    expression = select_cases(cases)
    if len(expression) > MOST_CHARACTERS:
        expression = body["cases"]
    return WantedRun(
        key=json.dumps(["extra", number, first.key]), body={**body, "cases": expression}
    )
