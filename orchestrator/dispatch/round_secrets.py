"""The secrets that the hosts of a job get for one step: only in memory, and never in the plan."""

from orchestrator.benchmarks.project_secrets import open_secrets
from orchestrator.benchmarks.selectors import get_stored_spec
from orchestrator.runs import claims
from orchestrator.runs.models import Job
from orchestrator.runs.states import TrialState
from orchestrator.runs.step_rounds import filter_step_trials


def open_round_secrets(job: Job) -> dict[str, str]:
    """Return the values for the planned trials of the job's step, and store their versions.

    Every host gets all of them: a process may print what another process told it. The caller holds
    the job's claim. InvalidRequestError if one was deleted in the meantime.
    """
    trials = filter_step_trials(job).filter(state=TrialState.PLANNED)
    cases = trials.order_by().values_list("case__parameters", flat=True).distinct()
    definition = job.run.definition
    names = get_stored_spec(definition).list_secret_names(cases)
    secrets = open_secrets(definition.benchmark.project, names)
    if secrets.versions != job.secret_versions:
        claims.update_job(job, secret_versions=secrets.versions)
    return secrets.values
