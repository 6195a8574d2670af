"""`pitwall backfill`: the estimate first; `--start` starts it once."""

import pytest

from orchestrator.runs.models import Backfill, Run

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = ("backfill", "--benchmark", "hello", "--hosts", "here")


def test_the_estimate_is_shown_and_nothing_starts(pitwall, world):
    done = pitwall(*WORDS, "--last", "3", "--every", "2")
    assert (done.status, done.out) == (0, "")
    assert "2 commits, 10 trials" in done.err
    assert "add --start" in done.err
    assert not Run.objects.exists()


def test_start_prints_the_id_and_a_repeated_start_adds_nothing(pitwall, world):
    done = pitwall(*WORDS, "--range", f"{world.shas[1]}..main", "--start")
    backfill = Backfill.objects.get()
    assert (done.status, done.out) == (0, f"{backfill.pk}\n")
    assert backfill.runs.count() == 2
    again = pitwall(*WORDS, "--range", f"{world.shas[1]}..main", "--start")
    assert (again.status, again.out) == (0, "")
    assert "skipped: 2 × already in another backfill" in again.err
    assert Run.objects.count() == 2


def test_tags_and_mistakes(pitwall, world):
    assert pitwall(*WORDS, "--tags", "v*").status == 2
    done = pitwall(*WORDS, "--range", "main")
    assert done.status == 2
    assert "expected FIRST..LAST" in done.err
