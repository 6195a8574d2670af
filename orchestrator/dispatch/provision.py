"""Preparation of a host for a job: agent, facts, load tool, commits."""

from collections.abc import Callable
from functools import partial
from typing import BinaryIO

from django.conf import settings

from orchestrator.benchmarks.build_sources import load_build_source, read_submodules
from orchestrator.benchmarks.mirrors import open_pack_file
from orchestrator.benchmarks.models import Case, Commit
from orchestrator.benchmarks.refs import open_repository_with
from orchestrator.benchmarks.repository import Repository
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.core.errors import HostBusyError
from orchestrator.dispatch.agent import Readiness
from orchestrator.dispatch.job_hosts import HostSession, JobHosts
from orchestrator.dispatch.sources import (
    build_lfs_path,
    build_repository_id,
    build_source_path,
    has_git,
    list_commits,
)
from orchestrator.dispatch.stage import (
    load_allowed_cases,
    load_supported_cases,
    resolve_cases,
    select_building_hosts,
)
from orchestrator.dispatch.tools import Needs, collect_tool_needs, find_own_tool, locate_tool
from orchestrator.fleet.host_variables import list_folders
from orchestrator.fleet.reservations import record_reported
from orchestrator.fleet.services import record_snapshot
from orchestrator.runs import claims
from orchestrator.runs.models import Job

#: A host that has one of this many previous commits gets only the newer ones.
ANCESTORS = 50


def inspect_host(job: Job, job_hosts: JobHosts, session: HostSession) -> Readiness:
    """Return what the host has of the needs of the job; store its facts as a snapshot.

    The lease belongs to this job, so other processes of agents are orphans and are stopped.
    """
    spec = read_spec(job.run.definition)
    cases = load_allowed_cases(job)
    specs = list({id(each): each for each in resolve_cases(spec, cases).values()}.values())
    builds_here = session.host in select_building_hosts(specs, job_hosts)
    tools = map(find_own_tool, _needs(cases, job, job_hosts, session))
    shas = _list_shas(job) if builds_here else []
    there = session.agent.ready(
        repository=build_repository_id(job.run.definition.benchmark.project),
        commits=shas,
        paths=[
            *map(build_source_path, shas),
            *(tool.remote_path for tool in tools if tool is not None),
        ],
        programs=sorted({name for each in specs for name in each.requires}) if builds_here else [],
        folders=list_folders(session.host.env),
        owner=str(session.host.pk),
        machine_lock=settings.ONE_HOST_PER_MACHINE,
    )
    if reserved := record_reported(session.host, there.reservation):
        # The queue leaves the host out from now on.
        raise HostBusyError(reserved, wait_s=0.0)
    snapshot = record_snapshot(host=session.host, facts=there.facts)
    if session.host == job.host:
        claims.update_job(job, snapshot=snapshot, phase="sending tools and commits")
    return there


def provision_host(job: Job, job_hosts: JobHosts, session: HostSession, there: Readiness) -> None:
    """Send to the host all that the job's rounds need; existing files stay.

    On a slow line this takes long, and the heartbeat of the claim keeps the job.
    """
    _send_tools(_needs(load_supported_cases(job), job, job_hosts, session), session, there)
    for commit in list_commits(job) if there.commits else []:
        _send_commit(job, session, commit, there)


def _needs(cases: list[Case], job: Job, job_hosts: JobHosts, session: HostSession) -> Needs:
    """Return the load tools that this host needs for these cases."""
    if session.host != job_hosts.lead:
        return {}
    spec = read_spec(job.run.definition)
    return collect_tool_needs(spec, [case.parameters for case in cases])


def _list_shas(job: Job) -> list[str]:
    return [variant.commit.sha for variant in job.run.variants.select_related("commit")]


def _send_tools(needs: Needs, session: HostSession, there: Readiness) -> None:
    for name, features in needs.items():
        path, own = locate_tool(name, there.facts, features)
        if own is not None and not there.present[path]:
            with open(own.path, "rb") as program:
                session.transport.put(program, path, mode=0o755)


def _send_commit(job: Job, session: HostSession, commit: Commit, there: Readiness) -> None:
    """Send a commit with its submodules and files of Git LFS; nothing if it cannot be measured."""
    since = job.started_at
    assert since is not None
    source = load_build_source(commit.project, commit, since=since)
    if source.problem:
        return
    open_mirror = partial(open_repository_with, commit.project, commit.sha, since)
    if not has_git(there.facts):
        path = build_source_path(commit.sha)
        if not _has_file(session, path, there):
            _send_file(session, path, partial(open_mirror().archive, commit.sha))
    elif not _has_commit(session, commit, there):
        _send_bundle(session, open_mirror(), build_repository_id(commit.project), commit.sha)
    trees = read_submodules(source)
    for tree in trees:
        path = build_source_path(tree.sha)
        if not _has_file(session, path, there):
            _send_file(session, path, partial(open_mirror().submodules.archive, tree.sha))
    path = build_lfs_path(commit.sha)
    if source.has_lfs_files and not _has_file(session, path, there):
        _send_file(session, path, partial(open_mirror().lfs.archive, commit.sha, trees))


def _has_commit(session: HostSession, commit: Commit, there: Readiness) -> bool:
    if commit.sha in there.commits:
        return there.commits[commit.sha]
    return session.agent.commits(build_repository_id(commit.project), commit.sha)[commit.sha]


def _has_file(session: HostSession, path: str, there: Readiness) -> bool:
    return there.present[path] if path in there.present else session.agent.has(path)[path]


def _send_bundle(session: HostSession, repository: Repository, name: str, sha: str) -> None:
    """Send the commit with the part of its history that the host does not have."""
    ancestors = repository.ancestors(sha, limit=ANCESTORS)
    there = session.agent.commits(name, *ancestors) if ancestors else {}
    known = next((each for each in ancestors if there.get(each)), None)
    with open_pack_file(settings.DATA_DIR) as file:
        repository.bundle(sha, file, without=known)
        file.seek(0)
        session.transport.put(file, f"bundles/{sha}.bundle")
    session.agent.take_bundle(name, sha)


def _send_file(session: HostSession, path: str, write: Callable[[BinaryIO], None]) -> None:
    with open_pack_file(settings.DATA_DIR) as file:
        write(file)
        file.seek(0)
        session.transport.put(file, path)
