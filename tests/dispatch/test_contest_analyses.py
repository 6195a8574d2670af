"""Between two rounds a job analyses its contests: against the baseline, or the first places."""

from pathlib import Path

import pytest

from orchestrator.core.clock import utc_now
from orchestrator.dispatch.contest_analyses import analyse_contests
from orchestrator.dispatch.interim import analyse_cases
from orchestrator.runs.case_status import load_case_statuses
from orchestrator.runs.models import InterimAnalysis, Job
from tests.dispatch.support import leased
from tests.support.factories import DEFINITION, Personas, record_trial

SOURCE = (
    DEFINITION.replace("connections: [4]", "server: [base, quick, same, slow]\n  connections: [4]")
    + "baseline: {server: base}\ncontest: server\n"
)
RATES = {"base": 1000.0, "quick": 1200.0, "same": 1000.0, "slow": 800.0}
#: In each round something else for each server, within ±0.3 %.
WOBBLE = (0.0, 2.0, -1.0, 3.0, -2.0, 1.0, -3.0)


def measure(job: Job, *rounds: int, invalid: str = "") -> None:
    """Fill in rounds that drift by up to 40 %, alike for all servers."""
    now = utc_now()
    for trial in job.trials.filter(round__in=rounds, state="planned").select_related("case"):
        server = trial.case.parameters["server"]
        wobble = WOBBLE[(3 * trial.round + list(RATES).index(server)) % len(WOBBLE)]
        rate = RATES[server] * (1 + 0.001 * wobble) * (1 + 0.1 * (trial.round % 5))
        trial.host = job.host
        validity = "invalid" if server == invalid else "valid"
        job.trials.filter(pk=trial.pk).update(
            state="measured", validity=validity, host=job.host, started_at=now, ended_at=now
        )
        readings = {
            "requests.rate": rate,
            "latency.p50": 4 / rate,
            "cpu.seconds_per_1k": 900 / rate,
        }
        record_trial(trial, readings, validity=validity)


def lines(job: Job) -> dict[str, str]:
    return {each.case.parameters["server"]: each.text for each in load_case_statuses(job.run)}


def planned(job: Job) -> set[str]:
    left = job.trials.filter(state="planned").select_related("case")
    return {trial.case.parameters["server"] for trial in left}


def analyse(job: Job) -> None:
    analyse_cases(job)
    analyse_contests(job)


@pytest.fixture
def compared(personas: Personas, tmp_path: Path) -> Job:
    return leased(personas, tmp_path, SOURCE, rounds=20, commits=1, until="compared")


def lease_ranked(personas: Personas, folder: Path, places: int) -> Job:
    options = {"until": "ranked", "places": places}
    return leased(personas, folder, SOURCE, rounds=20, commits=1, **options)


def test_values_end_when_they_are_decided_against_the_baseline(compared: Job) -> None:
    measure(compared, 1, 2, 3, 4)
    analyse(compared)
    assert not InterimAnalysis.objects.exists()
    measure(compared, 5)
    analyse(compared)
    assert planned(compared) == set()
    shown = lines(compared)
    assert shown["quick"].startswith("decided after 5 blocks: improved: ")
    assert shown["slow"].startswith("decided after 5 blocks: regressed: ")
    assert shown["same"] == "decided after 5 blocks: no change"
    assert shown["base"] == "decided after 5 blocks: the other values are compared with it"


def test_the_baseline_goes_on_for_a_value_that_is_not_decided(compared: Job) -> None:
    measure(compared, 1, 2, invalid="same")
    measure(compared, 3, 4, 5)
    analyse(compared)
    assert planned(compared) == {"base", "same"}
    measure(compared, 6, 7)
    analyse(compared)
    assert planned(compared) == set()
    assert lines(compared)["same"].startswith("decided after 5 blocks")
    blocks = dict(InterimAnalysis.objects.values_list("case__label", "blocks"))
    assert blocks == {
        "server quick, connections 4": 5,
        "server slow, connections 4": 5,
        "server same, connections 4": 5,
        "server base, connections 4": 7,
    }


def test_a_contest_ends_when_the_first_place_is_decided(personas: Personas, tmp_path: Path) -> None:
    job = lease_ranked(personas, tmp_path, places=1)
    measure(job, 1, 2, 3, 4)
    analyse(job)
    assert not InterimAnalysis.objects.exists()
    measure(job, 5)
    analyse(job)
    assert planned(job) == set()
    assert (
        lines(job)["quick"] == "decided after 5 blocks: the order by requests per second is quick"
    )
    assert lines(job)["slow"].endswith("behind the first 1 by requests per second")
    analyse(job)
    assert InterimAnalysis.objects.count() == 4


def test_a_value_that_was_given_up_prevents_no_decision(personas: Personas, tmp_path: Path) -> None:
    job = lease_ranked(personas, tmp_path, places=1)
    job.trials.filter(case__parameters__server="slow").update(state="skipped", message="it fails")
    measure(job, 1, 2, 3, 4, 5)
    analyse(job)
    assert planned(job) == set()
    assert InterimAnalysis.objects.filter(decided=True).count() == 3


def test_equal_values_go_on_and_those_behind_them_end(personas: Personas, tmp_path: Path) -> None:
    job = lease_ranked(personas, tmp_path, places=3)
    measure(job, 1, 2, 3, 4, 5)
    analyse(job)
    assert planned(job) == {"quick", "base", "same"}
    assert "not decided: the order of the first 3" in lines(job)["base"]
    measure(job, 6)
    analyse(job)
    assert InterimAnalysis.objects.count() == 4
    measure(job, *range(7, 21))
    analyse(job)
    assert planned(job) == set()
    assert lines(job)["base"].startswith("after 20 blocks: not decided")
