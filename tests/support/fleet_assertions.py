"""Check that a fleet has done its jobs as if there had been no fault, from the hosts' own journals.

The journals are compared with the database; the database is never compared with itself.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from orchestrator.measurements.readings import load_values
from orchestrator.runs.models import HostLease, Job, Run, Trial
from orchestrator.runs.states import JOB_ENDED, RUN_ENDED
from tests.support.journals import StepJournal, overlaps
from tests.support.netns import NamespaceHost

#: A stopped agent takes a moment to end.
_PATIENCE_S = 120


def assert_all_is_well(hosts: Sequence[NamespaceHost], runs: Sequence[Run]) -> None:
    """After a fault that is over: nothing was lost, doubled or left behind."""
    jobs = Job.objects.filter(run__in=runs)
    assert {run.state for run in Run.objects.filter(pk__in=[run.pk for run in runs])} <= RUN_ENDED
    assert {job.state for job in jobs} <= JOB_ENDED
    assert not HostLease.objects.exists()
    journals = [step for host in hosts for step in host.journals()]
    _assert_recorded_once(jobs, journals)
    for host in hosts:
        assert overlaps(host.journals()) == [], f"two at once on {host.name}"
        _assert_soon(lambda host=host: host.processes(), f"still runs on {host.name}")
        _assert_soon(lambda host=host: _tuning(host), f"still tuned on {host.name}")


def _assert_recorded_once(jobs: Iterable[Job], journals: Sequence[StepJournal]) -> None:
    """A result that a host finished has one row and one set of values; no other trial has any."""
    ours = {str(job.pk) for job in jobs}
    steps = [step for step in journals if step.job in ours]
    done = Counter(trial for step in steps for trial in set(step.trials("trial_done")))
    failed = {trial for step in steps for trial in step.trials("trial_failed")}
    trials = Trial.objects.filter(job__in=ours)
    by_state = {
        state: {str(pk) for pk in trials.filter(state=state).values_list("pk", flat=True)}
        for state in ("planned", "measured", "failed")
    }
    assert by_state["planned"] == set()
    assert by_state["measured"] == set(done), "what was measured is what the hosts finished"
    assert by_state["failed"] <= failed, "what failed is what the hosts say has failed"
    assert [trial for trial, times in done.items() if times > 1] == [], "measured twice"
    rates = load_values(trials.values_list("pk", flat=True), ["requests.rate"])
    values = Counter(map(str, rates))
    assert values == Counter(done), "one set of values for each trial"


def _tuning(host: NamespaceHost) -> list[str]:
    left = [str(path) for path in host.work_dir.glob("tuning.json")]
    return left if host.swappiness() == "60" else [*left, f"swappiness {host.swappiness()}"]


def _assert_soon(left: Callable[[], list[str]], message: str) -> None:
    give_up = time.monotonic() + _PATIENCE_S
    while what := left():
        assert time.monotonic() < give_up, f"{message}: {what}"
        time.sleep(0.2)
