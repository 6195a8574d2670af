"""Making a host ready for a job: agent, facts, load tool, sources."""

from pathlib import Path

from orchestrator.benchmarks.selectors import spec_of
from orchestrator.benchmarks.services import repository_of
from orchestrator.dispatch.agent import Agent
from orchestrator.dispatch.rounds import source_path
from orchestrator.dispatch.tools import tool_path
from orchestrator.fleet.services import record_snapshot
from orchestrator.runs import turns
from orchestrator.runs.models import Job
from orchestrator.transport.base import Transport


def provision(job: Job, transport: Transport, agent: Agent) -> None:
    """Leaves on the host all that the job's rounds need; what is there already stays.

    The turn is renewed between the parts, since an upload may take long on a slow line.
    """
    turns.change(job, phase="copying the agent")
    agent.install()
    snapshot = record_snapshot(host=job.host, facts=agent.facts())
    turns.change(job, snapshot=snapshot, phase="sending the load tool")
    _send_tool(job, transport, agent)
    turns.change(job, phase="sending the sources")
    _send_sources(job, transport, agent)


def _send_tool(job: Job, transport: Transport, agent: Agent) -> None:
    assert job.snapshot is not None
    path, own = tool_path(spec_of(job.run.definition).load.tool, job.snapshot.facts)
    if own is not None and not agent.has(path)[path]:
        transport.put(Path(own.path).read_bytes(), path, mode=0o755)


def _send_sources(job: Job, transport: Transport, agent: Agent) -> None:
    project = job.run.definition.benchmark.project
    repository = repository_of(project)
    shas = [variant.commit.sha for variant in job.run.variants.select_related("commit")]
    present = agent.has(*[source_path(sha) for sha in shas])
    for sha in shas:
        if not present[source_path(sha)]:
            # Another worker's mirror may not have this commit yet.
            repository.resolve(sha)
            transport.put(repository.archive(sha), source_path(sha))
            turns.change(job, phase="sending the sources")
