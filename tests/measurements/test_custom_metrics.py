"""What a host reports under names of its own is stored up to a limit, and the rest is named."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from orchestrator.accounts.quotas import QuotaExceededError
from orchestrator.loadtools.metrics import METRICS
from orchestrator.measurements.metrics import UNUSED_FOR, store_metrics, store_trial_metrics
from orchestrator.results.models import Metric
from tests.support.factories import Personas


def test_custom_metrics_above_the_quota_are_dropped_and_named(
    personas: Personas, settings: Any
) -> None:
    settings.MAX_CUSTOM_METRICS = 2
    team = personas.alice.team.pk
    hostile = [f"script.m{number}_s" for number in range(5000)]
    metrics = store_trial_metrics(team, [*METRICS, *hostile, "", "x" * 10_000, "nobody.knows"])
    assert {*METRICS, "script.m0_s", "script.m1000_s"} == {*metrics.ids}
    assert len(metrics.dropped) == 5001
    assert "5001 custom metrics not stored" in metrics.note
    assert len(metrics.note) < 500
    assert Metric.objects.filter(team=team).count() == 2
    assert store_trial_metrics(team, [*METRICS]).note == ""


def test_concurrent_requests_keep_the_quota_together(
    transactional_db: None, personas: Personas, settings: Any
) -> None:
    settings.MAX_CUSTOM_METRICS = 10
    team = personas.alice.team.pk

    def add(number: int) -> bool:
        try:
            store_metrics(team, [f"script.m{number}_{each}_s" for each in range(4)])
        except QuotaExceededError:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(add, range(6))) == 2
    assert Metric.objects.filter(team=team).count() == 8


def test_a_metric_of_another_team_is_not_removed(
    transactional_db: None, personas: Personas, settings: Any
) -> None:
    settings.MAX_CUSTOM_METRICS = 1
    team = personas.alice.team.pk
    store_metrics(team, ["script.used_s"])
    Metric.objects.update(created_at=Now() - UNUSED_FOR)
    locked, done = Event(), Event()

    def use() -> None:
        """As a commit of its first results does."""
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT FROM results_metric FOR KEY SHARE")
            locked.set()
            done.wait(60)
        connection.close()

    with ThreadPoolExecutor(1) as threads:
        using = threads.submit(use)
        locked.wait(60)
        try:
            with pytest.raises(QuotaExceededError):
                store_metrics(team, ["script.new_s"])
        finally:
            done.set()
        using.result()
    assert {*store_metrics(team, ["script.new_s"])} == {"script.new_s"}
