"""The JSON Schema of what the command line prints with `--json` (docs/command-line.md).

Most documents are answers of the API, so they are described by the same models.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal

from ninja import Schema
from pydantic import TypeAdapter

from orchestrator.api.schemas.backfills import BackfillOut, BackfillPlanOut
from orchestrator.api.schemas.catalogue import DefinitionOut
from orchestrator.api.schemas.common import CaseOut, CommitOut
from orchestrator.api.schemas.comparisons import ComparisonOut
from orchestrator.api.schemas.hosts import HostDetailOut, HostOut
from orchestrator.api.schemas.proposals import ProposalOut
from orchestrator.api.schemas.reports import ReportOut
from orchestrator.api.schemas.results import HistoryPreviewOut
from orchestrator.api.schemas.runs import RunOut
from orchestrator.api.schemas.trials import TrialOut

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DEFS = "#/$defs/{model}"


class FailedCase(Schema):
    """A case that failed for a commit; `trial` is its newest such trial in the API.

    `output` is the end of the output of its server, build or load tool, without control characters.
    """

    case: str
    host: str | None
    commit: str
    round: int
    trial: str
    reason: str
    output: str


class FollowedRun(RunOut):
    """A run; `failed_cases` are known once it has ended."""

    failed_cases: list[FailedCase]


class Backfill(Schema):
    """The estimate, and the backfill if it was started."""

    plan: BackfillPlanOut
    backfill: BackfillOut | None


class Build(Schema):
    """Whether a build passes. `status` is the exit status: 0, 1 or 4.

    `because`: the verdicts that fail it. `not_counted`: changes that may be smaller than
    `min_change`. `not_compared`: cases without a usable result.
    """

    status: int
    fail_on: list[str]
    min_change: float | None
    because: list[str]
    not_counted: list[str]
    not_compared: list[str]


class JudgedComparison(ComparisonOut):
    build: Build


class SingleMetric(Schema):
    """The mean of a metric and its 95 % interval over `trials` that count."""

    metric: str
    title: str
    unit: str
    better: str
    primary: bool
    value: float
    interval: tuple[float, float] | None
    trials: int


class SingleCase(Schema):
    case: CaseOut
    host: str
    metrics: list[SingleMetric]


class SingleCommit(Schema):
    """A commit that was measured alone."""

    benchmark: str
    baseline: CommitOut
    contender: None
    verdict: None
    summary: str
    notes: list[str]
    cases: list[SingleCase]


class Hosts(Schema):
    hosts: list[HostOut]


class ImportedFile(Schema):
    """New and already stored results of a file; null if only its preview was requested.

    `preview` is null for files of finished results.
    """

    file: str
    accepted: int | None
    repeated: int | None
    preview: HistoryPreviewOut | None


class ImportedFiles(Schema):
    files: list[ImportedFile]


class HostSetup(Schema):
    """`ran`: the script ran on this machine without an error."""

    script: str
    ran: bool


class Trials(Schema):
    trials: list[TrialOut]


class CommandError(Schema):
    """`http_status`: of a request that the server rejected. `run` and `failed_cases`: of a run that
    was waited for."""

    message: str
    exit_status: Literal[2, 3, 4, 5, 130]
    http_status: int | None = None
    run: RunOut | None = None
    failed_cases: list[FailedCase] = []


class FailedCommand(Schema):
    error: CommandError


#: Command → the document that it prints if it ends without an error.
DOCUMENTS: Mapping[str, Any] = {
    "run": FollowedRun,
    "wait": FollowedRun,
    "backfill": Backfill,
    "compare": JudgedComparison,
    "propose": ProposalOut,
    "hosts": Hosts,
    "reserve": HostDetailOut,
    "import": ImportedFiles,
    "export trials": Trials,
    "export report": ReportOut,
    "export definition": DefinitionOut,
    "host setup": HostSetup,
    "local": JudgedComparison | SingleCommit,
    "error": FailedCommand,
}


def build_command_line_schema() -> dict[str, Any]:
    """Return the schema: `$defs` has the document of each command, and `error` that of an error."""
    mode: Literal["serialization"] = "serialization"
    adapters = [(name, mode, TypeAdapter(kind)) for name, kind in DOCUMENTS.items()]
    schemas, definitions = TypeAdapter.json_schemas(adapters, ref_template=_DEFS)
    commands = {name: schemas[name, mode] for name in DOCUMENTS}
    return {
        "$schema": DIALECT,
        "title": "Documents of the Pitwall command line",
        "anyOf": [{"$ref": _DEFS.format(model=name.replace(" ", "%20"))} for name in commands],
        "$defs": {**dict(sorted(definitions["$defs"].items())), **commands},
    }


def render_command_line_schema() -> str:
    """Return the document as it is committed."""
    return json.dumps(build_command_line_schema(), indent=2, ensure_ascii=False) + "\n"
