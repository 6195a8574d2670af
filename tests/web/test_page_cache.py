"""Parts of pages are kept while nothing in them moved, and no longer."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event

import pytest
from django.test import Client

from orchestrator.core.clock import utc_now
from orchestrator.core.page_cache import MOST_PARTS, forget_parts, get_or_make_part
from orchestrator.fleet.models import Host
from orchestrator.runs.models import Job, Run
from tests.support.html_pages import elements
from tests.support.world import World


@pytest.fixture
def page(personas, data_dir, tmp_path):
    """Gets a page as alice; of a team with one run that ended two hours ago."""
    run = World.make(personas, tmp_path).measure_run(100, 200)
    before = utc_now() - timedelta(hours=2)
    Run.objects.filter(pk=run.pk).update(created_at=before, started_at=before, ended_at=before)
    client = Client()
    client.force_login(personas.alice.user)
    return lambda path: client.get(path).content.decode()


def test_a_part_is_rendered_again_with_another_version_key():
    made = []

    def make():
        made.append(1)
        return len(made)

    assert [get_or_make_part(("a",), mark, make) for mark in ("1", "1", "2", None, "2")] == [
        1,
        1,
        2,
        3,
        2,
    ]
    forget_parts()
    assert get_or_make_part(("a",), "2", make) == 4


# The overview also lists the projects, and may offer a first measurement.
@pytest.mark.parametrize(("path", "most"), [("/", 8), ("/runs/", 6)])
def test_a_cached_list_of_runs_needs_few_queries(page, django_assert_max_num_queries, path, most):
    first = page(path)
    with django_assert_max_num_queries(most):
        again = page(path)
    assert "2 h ago" in again
    assert len(elements(first, "tr")) == len(elements(again, "tr"))


def test_the_overview_shows_changes(page):
    page("/")
    Host.objects.update(state="maintenance")
    assert "In maintenance" in page("/")


@pytest.mark.parametrize("path", ["/", "/runs/"])
def test_a_running_run_is_never_cached(page, path):
    page(path)
    Run.objects.update(state="running", ended_at=None)
    Job.objects.update(state="measuring", ended_at=None)
    assert "Running" in page(path) or "running" in page(path)
    Run.objects.update(message="moved")
    assert page(path)


def test_parts_of_another_kind_evict_nothing():
    forget_parts()
    get_or_make_part(("front", 1), "mark", lambda: "old")
    for number in range(2 * MOST_PARTS):
        get_or_make_part(("history", number), "mark", lambda: "other")
    assert get_or_make_part(("front", 1), "mark", lambda: "new") == "old"
    assert get_or_make_part(("history", 0), "mark", lambda: "new") == "new"


def test_concurrent_requests_wait_for_one_rendering():
    forget_parts()
    begun, go_on = Event(), Event()

    def make():
        begun.set()
        assert go_on.wait(20)
        return "made once"

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(get_or_make_part, ("page", 1), "mark", make)
        assert begun.wait(20)
        second = pool.submit(get_or_make_part, ("page", 1), "mark", lambda: "made twice")
        go_on.set()
        assert (first.result(20), second.result(20)) == ("made once", "made once")


def test_a_failed_rendering_is_retried():
    forget_parts()

    def fails():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        get_or_make_part(("page", 1), "mark", fails)
    assert get_or_make_part(("page", 1), "mark", lambda: "made") == "made"
