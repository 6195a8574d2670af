"""The outcome of a job if some cases fail or cannot be measured."""

from pathlib import Path

import pytest

from orchestrator.dispatch.outcomes import abandon_cases, derive_outcome
from orchestrator.runs.models import Job
from tests.dispatch.support import leased
from tests.support.factories import DEFINITION, Personas

SOURCE = DEFINITION.replace("connections: [4]", "connections: [1, 2, 3, 4, 5]")


@pytest.fixture
def job(personas: Personas, tmp_path: Path) -> Job:
    """Of five cases and two commits, in two rounds."""
    return leased(personas, tmp_path, SOURCE, rounds=2)


@pytest.fixture
def small(personas: Personas, tmp_path: Path) -> Job:
    return leased(personas, tmp_path, DEFINITION, rounds=2)


def set_trials(job: Job, *connections: int, state: str, code: str = "", message: str = "") -> None:
    """The trials of the first round of these cases, of the contender only where they fail."""
    for trial in job.trials.filter(round=1).select_related("case", "variant"):
        if trial.case.parameters["connections"] not in connections:
            continue
        if state == "failed" and not trial.variant.position:
            job.trials.filter(pk=trial.pk).update(state="measured", validity="valid")
            continue
        job.trials.filter(pk=trial.pk).update(
            state=state,
            reasons=[code] if code else [],
            message=message,
            validity="valid" if state == "measured" else "",
        )


def left(job: Job) -> set[int]:
    trials = job.trials.filter(state="planned").select_related("case")
    return {trial.case.parameters["connections"] for trial in trials}


def test_a_case_that_keeps_failing_is_skipped_and_the_others_continue(job: Job) -> None:
    set_trials(job, 1, 2, state="failed", code="build_failed", message="undefined symbol")
    set_trials(job, 3, state="failed", code="tool_failed", message="timeout")
    set_trials(job, 4, 5, state="measured")
    abandon_cases(job)
    assert left(job) == {3, 4, 5}
    skipped = job.trials.filter(state="skipped")
    assert skipped.count() == 4
    assert all("undefined symbol" in trial.message for trial in skipped)
    state, message = derive_outcome(job)
    assert state == "finished"
    assert "skipped after failures: connections 1 · connections 2: commit" in message
    assert "timeout" not in message


def test_a_job_without_a_measured_case_fails(job: Job) -> None:
    set_trials(job, 1, 2, 3, 4, 5, state="failed", code="wrong_answer", message="Goodbye")
    abandon_cases(job)
    assert left(job) == set()
    state, message = derive_outcome(job)
    assert state == "failed"
    assert "connections 1 and 4 more cases" in message
    assert "Goodbye" in message


def test_a_job_of_one_case_fails_with_the_message_of_the_case(small: Job) -> None:
    set_trials(small, 4, state="failed", code="server_not_ready", message="no configuration")
    abandon_cases(small)
    sha = small.run.variants.get(position=1).commit.short_sha
    assert derive_outcome(small) == ("failed", f"commit {sha}: no configuration")


def test_unsupported_cases_are_not_failures(job: Job) -> None:
    job.trials.update(state="unsupported", message="it has no cargo")
    state, message = derive_outcome(job)
    assert state == "no_data"
    assert message == "unsupported: connections 1 and 4 more cases: it has no cargo"


def set_validity(job: Job, validity: str, *reasons: str) -> None:
    job.trials.update(state="measured", validity=validity, reasons=list(reasons))


def test_a_job_whose_trials_are_all_invalid_has_no_usable_data(small: Job) -> None:
    set_validity(small, "invalid", "http_errors: 40 answers with status 500", "steal: 3 %")
    state, message = derive_outcome(small)
    assert state == "no_data"
    assert message == (
        "no usable data: all 4 trials are invalid: Answers of another status (4 trials), "
        "CPU that the hypervisor took (4 trials)"
    )


def test_one_suspect_trial_is_usable_data(small: Job) -> None:
    set_validity(small, "invalid", "http_errors: 40 answers with status 500")
    one = small.trials.first()
    assert one is not None
    small.trials.filter(pk=one.pk).update(validity="suspect")
    assert derive_outcome(small) == ("finished", "")


def test_a_job_fails_if_all_supported_cases_were_skipped(job: Job) -> None:
    for trial in job.trials.select_related("case"):
        if trial.case.parameters["connections"] != 1:
            job.trials.filter(pk=trial.pk).update(state="unsupported", message="no k6")
    set_trials(job, 1, state="failed", code="build_failed", message="undefined symbol")
    state, message = derive_outcome(job)
    assert state == "failed"
    assert "undefined symbol" in message
    assert "no k6" in message
