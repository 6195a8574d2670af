"""A restored project is as it was, with everything that belongs to it."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.benchmarks.models import Case
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host
from orchestrator.regressions.change_points import store_baseline
from orchestrator.results.models import Series
from orchestrator.runs.golden import NewGolden, set_golden
from orchestrator.runs.models import Job, Run
from orchestrator.runs.states import JOB_ENDED, RUN_ENDED
from tests.api.conftest import ApiClient, make_client
from tests.support.demo_team import DemoTeam, make_demo_team
from tests.support.fetches import run_fetches

#: Addresses of the project itself do not exist while it is deleted.
OF_PROJECT = (
    "projects/server", "projects/server/dependents", "projects/server/retention",
    "projects/server/pins", "projects/server/removals", "projects/server/changes",
    "projects/server/forge", "projects/server/forge/webhooks", "projects/server/forge/requests",
    "projects/server/public", "projects/server/commits", "projects/server/refs",
    "projects/server/repository-access", "benchmarks/server/hello",
    "benchmarks/server/hello/definitions", "benchmarks/server/many/definitions/1",
    "benchmarks/server/hello/badges", "results?benchmark=hello&project=server",
    "reports/connections",
)  # fmt: skip
#: Lists of the team, which has no other project: then they are empty.
OF_TEAM = (
    "projects", "benchmarks", "schedules", "backfills", "reports", "annotations", "baselines",
    "alerts", "change-points", "runs", "share-links",
)  # fmt: skip


@pytest.fixture
def team(data_dir: Path, tmp_path: Path, db: None) -> DemoTeam:
    """Its runs have ended: a deletion would cancel the others."""
    team = make_demo_team(tmp_path)
    alice, host = team.personas.alice, Host.objects.get(name="here")
    set_golden(
        member=alice, host_id=host.pk,
        new=NewGolden(benchmark="hello", commit=team.shas[0], every_hours=24),
    )  # fmt: skip
    series = Series.objects.filter(benchmark__slug="hello").order_by("pk")[0]
    commit = series.benchmark.project.commits.get(sha=team.shas[1])
    store_baseline(member=alice, commit=commit, reason="a new compiler", series=series)
    Job.objects.exclude(state__in=JOB_ENDED).update(state="cancelled", ended_at=utc_now())
    Run.objects.exclude(state__in=RUN_ENDED).update(state="cancelled", ended_at=utc_now())
    return team


@pytest.fixture
def alice(team: DemoTeam) -> ApiClient:
    """A client with a token; it has written and shared something through the API."""
    client = make_client(team.personas.alice)
    note = {
        "project": "server", "benchmark": "hello", "commit": team.shas[1], "text": "new allocator"
    }  # fmt: skip
    assert client.post("annotations", note).status_code == 201
    shared = client.post("share-links", {"page": "/reports/connections/", "days": 7})
    assert shared.status_code == 201
    return client


def _read(client: ApiClient, path: str) -> Any:
    name, _, query = path.partition("?")
    answer = client.get(name, **dict(part.split("=") for part in query.split("&") if part))
    if answer.status_code == 404:
        return None
    assert answer.status_code == 200, (path, answer)
    if answer.streaming:
        return b"".join(answer.streaming_content).decode().splitlines()
    return _leave_out_times(answer.json())


def _leave_out_times(data: Any) -> Any:
    """Leave out what changes: the restoration requests a fetch, and the token is used."""
    if isinstance(data, list):
        return [_leave_out_times(each) for each in data]
    if not isinstance(data, dict):
        return data
    changing = {"fetch", "fetched_at", "last_used_at"}
    return {name: _leave_out_times(each) for name, each in data.items() if name not in changing}


@pytest.mark.parametrize(
    ("path", "restore", "gone"),
    [
        ("projects/server", "deleted/projects", OF_PROJECT),
        ("benchmarks/server/hello", "deleted/benchmarks", ("benchmarks/server/hello",)),
    ],
)
def test_everything_returns(
    team: DemoTeam, alice: ApiClient, path: str, restore: str, gone: tuple[str, ...]
) -> None:
    key = Case.objects.filter(benchmark__slug="hello").order_by("pk")[0].key
    chart = f"history?benchmark=hello&project=server&case={key}&host=here&metric=requests.rate"
    of_hosts = ("hosts", f"hosts/{team.ids['host']}", f"hosts/{team.ids['host']}/calibrations")
    paths = (*OF_PROJECT, *OF_TEAM, chart, "tokens", *of_hosts)
    before = {each: _read(alice, each) for each in paths}
    assert [each for each, data in before.items() if data is None] == []
    empty = {each for each in OF_TEAM if not next(iter(before[each].values()))}
    assert empty == set(), "the team has something of each kind"

    assert alice.delete(path).status_code == 204
    assert [each for each in (*gone, chart) if _read(alice, each) is not None] == []
    if path == "projects/server":
        left = {each: next(iter(_read(alice, each).values())) for each in OF_TEAM}
        assert left == {each: [] for each in OF_TEAM}
    kind = restore.rpartition("/")[2]
    row = next(each for each in alice.get("deleted").json()[kind] if each["benchmark"] != "former")
    assert alice.post(f"{restore}/{row['id']}/restore").status_code == 200
    run_fetches()

    after = {each: _read(alice, each) for each in paths}
    assert [each for each in paths if after[each] != before[each]] == []
