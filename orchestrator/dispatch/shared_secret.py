"""The secret that the hosts of a job share for authentication, kept until the job ends."""

from orchestrator.core.ids import new_hex
from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.fleet.vault import seal, unseal
from orchestrator.runs import claims
from orchestrator.runs.models import Job


def load_secret(job: Job, job_hosts: JobHosts) -> str | None:
    """Return the job's secret, created at the first call; None for a single host.

    The caller holds the job's claim.
    """
    if len(job_hosts.hosts) == 1:
        return None
    if job.sealed_secret is not None:
        return unseal(job, "sealed_secret")
    secret = new_hex()
    claims.update_job(job, sealed_secret=seal(job, "sealed_secret", secret))
    return secret
