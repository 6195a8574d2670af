"""Several loads in one trial by the whole engine, against servers of known behaviour."""

import pytest

from orchestrator.histories.histories import Part, load_case_history
from orchestrator.measurements.readings import load_values
from orchestrator.results.models import LoadResult
from orchestrator.runs.models import Run, Trial
from tests.support.planted_faults import Laboratory, definition, reason

pytestmark = [pytest.mark.engine, pytest.mark.quiet, pytest.mark.django_db, pytest.mark.slow]

#: The same server under an open and under a closed load. With 1000 requests p99 is known, and a
#: busy machine may spoil one of three freezes.
STEPS = """
  connections: 2
  warmup_s: 0.3
  duration_s: 3.5
  steps: [{rate: 150, warmup_s: 0.3, duration_s: 7}, {warmup_s: 0}]
"""
MAX_PROBES = 32
#: Short probes, and an objective that a hiccup of a busy machine does not miss.
SEARCH = f"""
  connections: 50
  warmup_s: 0
  search:
    objective: p50 < 50 ms and delivered >= 90 %
    low: 50
    high: 2000
    probe_s: 1
    max_probes: {MAX_PROBES}
    confirmations: 1
"""


@pytest.fixture(scope="module")
def stepped(lab: Laboratory) -> Run:
    return lab.measure("steps", definition(STEPS), contender="freezes")


@pytest.fixture(scope="module")
def searched(lab: Laboratory) -> Run:
    return lab.measure("search", definition(SEARCH), baseline="late", contender="queues")


def test_a_freezing_server_is_hidden_only_from_a_closed_load(lab: Laboratory, stepped: Run) -> None:
    """For 200 ms of each 2.2 s nobody is answered: who waits for answers asks little meanwhile."""
    trial = lab.trial(stepped, "freezes")
    latencies = [read_p99(step) for step in load_steps(trial)]
    assert latencies[0] >= 0.15 > latencies[1]
    honest = [read_p99(step) for step in load_steps(lab.trial(stepped, "honest"))]
    assert honest[0] < latencies[0]


def test_each_step_is_kept_with_its_own_numbers(lab: Laboratory, stepped: Run) -> None:
    trial = lab.trial(stepped, "honest")
    steps = load_steps(trial)
    assert [(step.number, step.rate, step.connections) for step in steps] == [
        (0, 150, 2),
        (1, None, 2),
    ]
    assert all(step.passed is None and step.encoded for step in steps)
    own = [step.readings["requests.ok"] for step in steps]
    # A step that was too much for this machine is left out of the trial's numbers.
    assert load_readings(trial)["requests.ok"] in (sum(own), *own)
    assert load_readings(trial)["requests.ok"] > 0


def test_a_search_finds_a_known_capacity(lab: Laboratory, searched: Run) -> None:
    trial = lab.trial(searched, "queues")
    readings = load_readings(trial)
    # Where probes are short, more than 200/s is borne for a while.
    assert 150 <= readings["capacity.rate"] <= 300
    assert readings["capacity.low"] < readings["capacity.rate"] < readings["capacity.high"]
    probes = load_steps(trial)
    assert len(probes) == readings["capacity.probes"] <= MAX_PROBES
    assert all(each.reason for each in probes)
    assert not any(each.passed for each in probes if (each.rate or 0) >= 400)
    assert not {key for key in readings if not key.startswith("capacity.")}


def test_the_capacity_is_found_in_the_history(lab: Laboratory, searched: Run) -> None:
    trial = lab.trial(searched, "queues")
    assert trial.host is not None
    history = load_case_history(
        lab.member,
        benchmark=lab.benchmark(searched),
        metric_key="capacity.rate",
        case=trial.case,
        host=trial.host,
        part=Part(every=True),
    )
    (point,) = [each for each in history.points if each.commit == lab.commit("queues")]
    # A busy machine may have spoilt the trial; then it is counted, and its value is not shown.
    spoilt = trial.validity == "invalid"
    assert (point.value, point.excluded) == (
        (None, 1) if spoilt else (load_readings(trial)["capacity.rate"], 0)
    )


def test_a_search_without_a_result_reports_a_fix(lab: Laboratory, searched: Run) -> None:
    trial = lab.trial(searched, "late")
    assert "lower search.low, allow longer probes or ask" in reason(trial, "search_open")
    assert trial.validity == "invalid"
    assert "capacity.rate" not in load_readings(trial)
    probes = load_steps(trial)
    # Its objective needs 23 requests, which four probes of a second have at 5.75/s.
    assert list(dict.fromkeys(each.rate for each in probes)) == [50, 25, 12.5, 6.25, 5.75]
    assert [each.rate for each in probes[:4]] == [50, 25, 12.5, 12.5]
    assert not any(each.passed for each in probes)
    assert all("latency.p50 0.3" in each.reason for each in probes)


def load_steps(trial: Trial) -> list[LoadResult]:
    return list(LoadResult.objects.filter(trial=trial).order_by("number"))


def read_p99(step: LoadResult) -> float:
    return float(step.readings["latency.p99"])


def load_readings(trial: Trial) -> dict[str, float]:
    return load_values([trial.pk])[trial.pk]
