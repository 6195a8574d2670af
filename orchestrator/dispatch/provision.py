"""Making a host ready for a job: agent, facts, load tool, commits."""

from pathlib import Path

from orchestrator.benchmarks.repository import Repository
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.benchmarks.services import repository_of
from orchestrator.dispatch.crew import Crew, Site
from orchestrator.dispatch.rounds import (
    has_git,
    hosts_that_build,
    repository_id,
    source_path,
)
from orchestrator.dispatch.tools import tool_path
from orchestrator.fleet.services import record_snapshot
from orchestrator.runs import turns
from orchestrator.runs.models import Job

#: What nobody used for so long is removed from hosts.
KEEP_DAYS = 30.0
#: A host that has one of so many last commits gets only what came since.
ANCESTORS = 50


def provision(job: Job, crew: Crew, site: Site) -> None:
    """Leaves on the host all that the job's rounds need of it; what is there already stays.

    The lease is ours, so whatever still works there is a leftover, and ends. The turn is renewed
    between the parts, since an upload may take long on a slow line.
    """
    turns.change(job, phase="copying the agent")
    site.agent.install()
    site.agent.stop_all()
    site.agent.prune(keep_days=KEEP_DAYS, limit_bytes=site.host.disk_limit_bytes)
    snapshot = record_snapshot(host=site.host, facts=site.agent.facts())
    if site.host == job.host:
        turns.change(job, snapshot=snapshot)
    if site.host == crew.lead:
        turns.change(job, phase="sending the load tool")
        _send_tool(job, site, snapshot.facts)
    if site.host in hosts_that_build(spec_of(job.run.definition), crew):
        turns.change(job, phase="sending the commits")
        _send_commits(job, site, snapshot.facts)


def _send_tool(job: Job, site: Site, facts: dict[str, object]) -> None:
    path, own = tool_path(spec_of(job.run.definition).load.tool, facts)
    if own is not None and not site.agent.has(path)[path]:
        site.transport.put(Path(own.path).read_bytes(), path, mode=0o755)


def _send_commits(job: Job, site: Site, facts: dict[str, object]) -> None:
    project = job.run.definition.benchmark.project
    repository = repository_of(project)
    shas = [variant.commit.sha for variant in job.run.variants.select_related("commit")]
    if not has_git(facts):
        _send_archives(job, site, repository, shas)
        return
    name = repository_id(project)
    present = site.agent.commits(name, *shas)
    for sha in shas:
        if not present[sha]:
            _send_bundle(site, repository, name, sha)
            turns.change(job, phase="sending the commits")


def _send_bundle(site: Site, repository: Repository, name: str, sha: str) -> None:
    """The commit with all of its history that the host does not have yet."""
    # Another worker's mirror may not have this commit yet.
    repository.resolve(sha)
    ancestors = repository.ancestors(sha, limit=ANCESTORS)
    there = site.agent.commits(name, *ancestors) if ancestors else {}
    known = next((each for each in ancestors if there.get(each)), None)
    site.transport.put(repository.bundle(sha, without=known), f"bundles/{sha}.bundle")
    site.agent.take_bundle(name, sha)


def _send_archives(job: Job, site: Site, repository: Repository, shas: list[str]) -> None:
    present = site.agent.has(*[source_path(sha) for sha in shas])
    for sha in shas:
        if not present[source_path(sha)]:
            repository.resolve(sha)
            site.transport.put(repository.archive(sha), source_path(sha))
            turns.change(job, phase="sending the commits")
