"""Benchmarks that were tried and never saved are deleted after some time."""

from datetime import timedelta

import pytest

from orchestrator.accounts.models import AuditEntry
from orchestrator.benchmarks.models import Benchmark
from orchestrator.benchmarks.refs import resolve_as_fetched
from orchestrator.benchmarks.selectors import load_benchmarks
from orchestrator.benchmarks.services import save_definition
from orchestrator.core.clock import utc_now
from orchestrator.dispatch import background_tasks
from orchestrator.retention import abandoned_drafts
from orchestrator.retention.abandoned_drafts import DAYS_KEPT, delete_abandoned_drafts
from orchestrator.retention.deletions import (
    DAYS_TO_RESTORE,
    load_deleted_benchmarks,
    remove_deleted,
    restore_benchmark,
)
from orchestrator.runs.models import Run
from orchestrator.runs.tries import try_definition
from tests.support.factories import DEFINITION
from tests.support.world import World

ABANDONED = timedelta(days=DAYS_KEPT, minutes=1)
REMOVED = timedelta(days=DAYS_TO_RESTORE, hours=2)


def _try(world: World, slug: str = "shop", source: str = DEFINITION) -> Run:
    with resolve_as_fetched():
        return try_definition(
            member=world.alice, project=world.project, slug=slug, source=source, host="here"
        )


@pytest.fixture
def draft(world: World) -> Benchmark:
    """A draft whose only run has ended."""
    Run.objects.filter(pk=_try(world).pk).update(state="finished", ended_at=utc_now())
    benchmark = Benchmark.objects.get(slug="shop")
    assert benchmark.is_draft
    return benchmark


def test_an_abandoned_draft_is_deleted_and_saved_benchmarks_stay(
    world: World, draft: Benchmark
) -> None:
    assert delete_abandoned_drafts(utc_now() + ABANDONED - timedelta(days=1)) == 0

    assert delete_abandoned_drafts(utc_now() + timedelta(days=400)) == 1

    assert [each.slug for each in Benchmark.objects.all()] == ["hello"]
    entry = AuditEntry.objects.get(action="benchmark.deleted")
    assert (entry.actor, entry.subject) == (None, "server/shop: an abandoned draft")


def test_the_periodic_task_deletes_it_and_removes_it_for_good_later(
    world: World, draft: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    for later in (ABANDONED, ABANDONED + REMOVED):
        assert Benchmark.with_deleted.filter(pk=draft.pk).exists()
        now = utc_now() + later
        monkeypatch.setattr(background_tasks, "utc_now", lambda now=now: now)
        background_tasks.prune_results()
    assert not Benchmark.with_deleted.filter(pk=draft.pk).exists()
    assert not Run.objects.filter(definition__benchmark=draft.pk).exists()
    assert Benchmark.objects.filter(slug="hello").exists()


def test_a_later_run_keeps_a_draft(world: World, draft: Benchmark) -> None:
    Run.objects.update(created_at=utc_now() + timedelta(days=20))
    assert delete_abandoned_drafts(utc_now() + ABANDONED) == 0
    assert delete_abandoned_drafts(utc_now() + ABANDONED + timedelta(days=20)) == 1


def test_a_later_change_keeps_a_draft(world: World, draft: Benchmark) -> None:
    # As if it was tried long ago: its definition, from now, counts as the later change.
    long_ago = utc_now() - timedelta(days=90)
    Run.objects.update(created_at=long_ago)
    Benchmark.objects.update(created_at=long_ago)
    assert delete_abandoned_drafts(utc_now()) == 0
    assert delete_abandoned_drafts(utc_now() + ABANDONED) == 1


def test_a_restored_draft_is_saved_and_not_deleted_again(world: World, draft: Benchmark) -> None:
    # A draft can be restored for 14 days from now.
    Benchmark.objects.filter(pk=draft.pk).update(created_at=utc_now() - ABANDONED)
    assert delete_abandoned_drafts(utc_now() + ABANDONED) == 1
    assert load_deleted_benchmarks(world.alice).get() == draft

    restored = restore_benchmark(member=world.alice, benchmark_id=draft.pk)

    assert not restored.is_draft
    assert draft in load_benchmarks(world.alice)
    assert Run.objects.get(definition__benchmark=draft).state == "finished"
    assert delete_abandoned_drafts(utc_now() + timedelta(days=400)) == 0
    remove_deleted(utc_now() + timedelta(days=400))
    assert draft in load_benchmarks(world.alice)


def test_a_saved_draft_is_kept(world: World, draft: Benchmark) -> None:
    save_definition(member=world.alice, project=world.project, slug="shop", source=DEFINITION)
    assert delete_abandoned_drafts(utc_now() + timedelta(days=400)) == 0


def test_each_task_deletes_a_limited_number(
    world: World, draft: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    _try(world, slug="another")
    monkeypatch.setattr(abandoned_drafts, "DRAFTS", 1)
    later = utc_now() + ABANDONED
    assert [delete_abandoned_drafts(later) for _ in range(3)] == [1, 1, 0]
