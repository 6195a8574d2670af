"""What a host reports under names of its own is stored up to a limit, and the rest is named."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection

from orchestrator.accounts.quotas import QuotaExceededError
from orchestrator.loadtools.metrics import METRICS
from orchestrator.results.models import Metric
from orchestrator.results.recording.metrics import metric_ids, metrics_of_trial
from tests.support.factories import Personas


def test_a_trial_keeps_what_fits_and_names_the_rest(personas: Personas, settings: Any) -> None:
    settings.MAX_CUSTOM_METRICS = 2
    team = personas.alice.team.pk
    hostile = [f"script.m{number}_s" for number in range(5000)]
    found = metrics_of_trial(team, [*METRICS, *hostile, "", "x" * 10_000, "nobody.knows"])
    assert {*METRICS, "script.m0_s", "script.m1000_s"} == {*found.ids}
    assert len(found.left_out) == 5001
    assert "5001 custom metrics not stored" in found.note
    assert len(found.note) < 500
    assert Metric.objects.filter(team=team).count() == 2
    assert metrics_of_trial(team, [*METRICS]).note == ""


def test_posts_at_once_do_not_exceed_the_limit_together(
    transactional_db: None, personas: Personas, settings: Any
) -> None:
    settings.MAX_CUSTOM_METRICS = 10
    team = personas.alice.team.pk

    def add(number: int) -> bool:
        try:
            metric_ids(team, [f"script.m{number}_{each}_s" for each in range(4)])
        except QuotaExceededError:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(add, range(6))) == 2
    assert Metric.objects.filter(team=team).count() == 8
