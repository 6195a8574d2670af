"""The certificates of a job that needs some: one set for all its hosts, kept until it ends."""

import json
from dataclasses import asdict

from orchestrator.benchmarks.spec import Spec
from orchestrator.core.clock import utc_now
from orchestrator.dispatch.job_hosts import JobHosts
from orchestrator.dispatch.tls import Certificates, make_certificates, needs_tls
from orchestrator.fleet.vault import seal, unseal
from orchestrator.runs import claims
from orchestrator.runs.models import Job


def ensure_certificates(job: Job, spec: Spec, job_hosts: JobHosts) -> Certificates | None:
    """Return the job's certificates, created at the first call; None if it needs none.

    The caller holds the job's claim.
    """
    if not needs_tls(spec):
        return None
    if job.tls is None:
        addresses = [job_hosts.address(host) for host in job_hosts.hosts]
        certificates = make_certificates(addresses, now=utc_now())
        claims.update_job(job, tls=seal(job, "tls", json.dumps(asdict(certificates))))
        return certificates
    return Certificates(**json.loads(unseal(job, "tls")))


def plan_entry(certificates: Certificates | None, *, serves: bool) -> dict[str, str | None] | None:
    """Return their entry in a host's plan: key and certificate only on hosts that run a server."""
    if certificates is None:
        return None
    entry = asdict(certificates)
    return entry if serves else {**entry, "cert": None, "key": None}
