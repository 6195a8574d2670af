"""A cached page is the page that a process without a cache would make, whatever was written."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event

import pytest
from django.db import connection, transaction
from django.test import Client

from orchestrator.benchmarks.models import Project
from orchestrator.core.clock import utc_now
from orchestrator.core.page_cache import forget_parts
from orchestrator.fleet.models import Host
from orchestrator.fleet.services import save_profile
from orchestrator.histories.annotations import annotate
from orchestrator.measurements.version_keys import read_results_version
from orchestrator.reports.models import ReferenceSource
from orchestrator.reports.saved_reports import save_report
from orchestrator.retention.pruning import prune
from orchestrator.retention.settings import RetentionSettings, save_retention
from orchestrator.runs.models import Run, Trial
from tests.support.factories import DEFINITION, finish_run, make_definition, make_run
from tests.web.conftest import World

OLD = utc_now() - timedelta(days=40)
REPORT = """\
version: 1
title: How fast
benchmark: server/hello
tables:
  - title: Rates
    rows: [connections, commit]
    columns: [{metric: requests.rate, title: Rate}]
"""


@pytest.fixture
def old_world(world: World) -> World:
    """The world; its run ended long enough ago for lists to be cached."""
    _age_runs()
    return world


def _age_runs() -> None:
    for number, run in enumerate(Run.objects.order_by("created_at")):
        at = OLD + number * timedelta(minutes=1)
        Run.objects.filter(pk=run.pk).update(created_at=at, started_at=at, ended_at=at)
    Trial.objects.filter(state="measured").update(started_at=OLD, ended_at=OLD)


def _address(page: str, world: World) -> str:
    query = f"benchmark=server/hello&baseline={world.shas[0]}&contender={world.shas[2]}"
    return {
        "overview": "/",
        "runs": "/runs/",
        "comparison": f"/compare/?{query}",
        "history": "/history/?benchmark=server/hello",
        "report": "/reports/fast/",
    }[page]


def _main(client: Client, address: str) -> str:
    """What the page shows, without the masked tokens of its forms."""
    answer = client.get(address)
    assert answer.status_code == 200
    shown = re.search(r"<main.*</main>", answer.content.decode(), re.DOTALL)
    assert shown is not None
    return re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"', "", shown[0])


def _fresh(client: Client, address: str) -> str:
    forget_parts()
    return _main(client, address)


def _measure(world: World) -> None:
    finish_run(make_run(world.alice, world.shas, rounds=2), [1000, 990, 700])
    _age_runs()


def _queue(world: World) -> None:
    make_run(world.alice, world.shas, rounds=2)


def _define(world: World) -> None:
    project = Project.objects.get()
    make_definition(
        world.alice, project, source=DEFINITION.replace("title: Hello", "title: A new title")
    )


def _remove_trials(world: World) -> None:
    project = Project.objects.get()
    wanted = RetentionSettings(
        files_days=1, distributions_days=1, trials_days=1, points_days=None, keep_every=None
    )
    save_retention(member=world.alice, project=project, wanted=wanted)
    prune(project, utc_now())


def _rename_profile(world: World) -> None:
    save_profile(member=world.alice, slug="any", name="Another name")


def _maintain_host(_: World) -> None:
    Host.objects.update(state="maintenance")


def _annotate(world: World) -> None:
    commit = Project.objects.get().commits.get(sha=world.shas[2])
    annotate(member=world.alice, commit=commit, text="A new kernel since this commit")


@pytest.mark.parametrize(
    ("page", "write"),
    [
        ("overview", _measure),
        ("overview", _queue),
        ("overview", _define),
        ("overview", _rename_profile),
        ("overview", _maintain_host),
        ("runs", _measure),
        ("runs", _queue),
        ("runs", _define),
        ("comparison", _measure),
        ("comparison", _remove_trials),
        ("history", _measure),
        ("history", _annotate),
        ("report", _measure),
        ("report", _queue),
        ("report", _define),
    ],
)
def test_a_write_shows_at_once(
    page: str, write: Callable[[World], None], old_world: World, alice: Client
) -> None:
    if page == "report":  # Retention spares what a saved report shows.
        save_report(member=old_world.alice, source=REPORT, slug="fast")
    address = _address(page, old_world)
    before = _main(alice, address)
    assert _main(alice, address) == before

    write(old_world)

    after = _main(alice, address)
    assert after != before
    assert after == _fresh(alice, address)


def test_a_removed_reference_changes_the_key_of_results(old_world: World) -> None:
    project = Project.objects.get()
    benchmark, commits = project.benchmarks.get(), list(project.commits.all())
    for name, at in (("older", OLD), ("newer", utc_now())):
        ReferenceSource.objects.create(team=project.team, name=name, format="csv", imported_at=at)
    before = read_results_version(benchmark, commits)

    ReferenceSource.objects.get(name="older").delete()

    assert read_results_version(benchmark, commits) != before


def test_a_write_that_is_rolled_back_leaves_nothing(old_world: World, alice: Client) -> None:
    address = _address("comparison", old_world)
    before = _main(alice, address)
    with transaction.atomic():
        _measure(old_world)
        inside = _main(alice, address)
        transaction.set_rollback(True)

    assert inside != before
    assert _main(alice, address) == before == _fresh(alice, address)


@pytest.mark.django_db(transaction=True)
def test_no_page_misses_the_later_commit_of_two_writers(old_world: World, alice: Client) -> None:
    """The writer that began first commits last, after the page of the other one was cached."""
    address = _address("history", old_world)
    project = Project.objects.get()
    benchmark, commits = project.benchmarks.get(), list(project.commits.all())
    runs = [make_run(old_world.alice, [sha], rounds=2) for sha in old_world.shas[::2]]
    before = _main(alice, address)
    keys = [read_results_version(benchmark, commits)]
    written, go_on = Event(), Event()

    def write_slowly() -> None:
        try:
            with transaction.atomic():
                finish_run(runs[0], [1300])
                written.set()
                assert go_on.wait(60)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(write_slowly)
        try:
            assert written.wait(60)
            assert _main(alice, address) == before
            finish_run(runs[1], [700])
            between = _main(alice, address)
            keys.append(read_results_version(benchmark, commits))
        finally:
            go_on.set()
        slow.result(60)

    after = _main(alice, address)
    assert len({before, between, after}) == 3
    assert len({*keys, read_results_version(benchmark, commits)}) == 3
    assert after == _fresh(alice, address)
