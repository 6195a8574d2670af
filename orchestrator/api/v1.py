"""Version 1 of the REST API: its parts and their assembly."""

from orchestrator.api.auth import BearerToken
from orchestrator.api.docs import DocsPage
from orchestrator.api.errors import add_handlers
from orchestrator.api.gate import wrap_operation
from orchestrator.api.once import run_once
from orchestrator.api.openapi import DescribedAPI
from orchestrator.api.routers import (
    annotations,
    backfills,
    builds,
    calibrations,
    catalogue,
    changes,
    channels,
    comparisons,
    deletions,
    fleet,
    forges,
    histories,
    hosts,
    latencies,
    load_tools,
    project_secrets,
    projects,
    proposals,
    pull_requests,
    queue,
    references,
    reports,
    repository_access,
    results,
    retention,
    runs,
    schedules,
    sharing,
    team,
    trials,
    unknown,
    validity,
)

DESCRIPTION = """\
Starts benchmark runs, follows them and compares commits. Create an API token in the team's settings
and send it as `Authorization: Bearer pw_…`. Errors are `application/problem+json` documents whose
`detail` says what to do. Times are in UTC; quantities are in the unit shown next to them.
"""

api = DescribedAPI(
    title="Pitwall",
    version="1",
    description=DESCRIPTION,
    urls_namespace="api-v1",
    auth=BearerToken(),
    docs=DocsPage(),
)
add_handlers(api)
api.add_decorator(run_once, mode="operation")
api.add_decorator(wrap_operation, mode="view")
PARTS = (
    runs, queue, schedules, backfills, builds, comparisons, histories, latencies, reports, results,
    catalogue, proposals, projects, references, load_tools, hosts, fleet, calibrations, trials,
    retention, changes, annotations, team, pull_requests, channels, forges, repository_access,
    project_secrets, sharing, validity, deletions, unknown,
)  # fmt: skip
for part in PARTS:
    api.add_router("", part.router)
