"""Load tools and their capabilities."""

from ninja import Schema

from orchestrator.fleet.tools import InstalledTool
from orchestrator.loadtools.model import PROTOCOL_TITLES, Knowledge
from orchestrator.loadtools.model import Protocol as ProtocolName
from orchestrator.loadtools.registry import Adapter
from orchestrator.loadtools.sheets import format_version
from orchestrator.measurements.tool_errors import MetricError, ToolErrors


class SpokenOut(Schema):
    """A protocol of the tool, as definitions name it."""

    protocol: ProtocolName
    tls: bool
    title: str


class InstalledOut(Schema):
    """A host that has the tool; `fit`: its version is new enough. `reason`: why `version`
    is null."""

    host: str
    path: str
    version: str | None
    features: list[str]
    fit: bool
    reason: str


class MetricErrorOut(Schema):
    """measured / known - 1 over the newest `trials`: the median, minimum and maximum."""

    metric: str
    median: float
    low: float
    high: float
    trials: int


class VersionErrorsOut(Schema):
    version: str
    errors: list[MetricErrorOut]


class LoadToolOut(Schema):
    """The capabilities of the tool, what it reports (`yes`, `partly`, `no`; `no` means unknown),
    and limits of its results.

    `open_loop`: it sends on schedule, and latency counts from the time when a request was due.
    `distribution`: `rows`, each request with its time, or `buckets`, without times. `warmup`:
    `inside` the measured load or a separate load, `apart`. `errors` is empty until the tool has
    measured a server with known values.
    """

    name: str
    minimum_version: str
    protocols: list[SpokenOut]
    streams: bool
    open_loop: bool
    by_duration: bool
    by_count: bool
    random_path: bool
    methods: bool
    headers: bool
    body: bool
    keepalive_off: bool
    compression: bool
    request_timeout: bool
    connect_timeout: bool
    warmup: str
    distribution: str
    status_codes: Knowledge
    reports_errors: Knowledge
    bytes_in: Knowledge
    bytes_out: Knowledge
    reports_protocol: Knowledge
    verifies_certificate: bool
    caveats: list[str]
    hosts: list[InstalledOut]
    errors: list[VersionErrorsOut]


class LoadToolPage(Schema):
    load_tools: list[LoadToolOut]
    next: str | None


_ALIKE = (
    "streams", "open_loop", "by_duration", "by_count", "random_path", "methods", "headers", "body",
    "keepalive_off", "compression", "request_timeout", "connect_timeout", "warmup", "distribution",
    "status_codes", "bytes_in", "bytes_out", "reports_protocol", "verifies_certificate",
)  # fmt: skip


def build_load_tool_out(
    tool: Adapter, installed: list[InstalledTool], errors: list[ToolErrors]
) -> LoadToolOut:
    sheet = tool.sheet
    return LoadToolOut(
        name=tool.name,
        minimum_version=format_version(tool),
        protocols=[
            SpokenOut(protocol=protocol, tls=tls, title=title)
            for (protocol, tls), title in PROTOCOL_TITLES.items()
            if (protocol, tls) in sheet.protocols
        ],
        **{name: getattr(sheet, name) for name in _ALIKE},
        reports_errors=sheet.errors,
        caveats=list(sheet.caveats),
        hosts=[_build_installed_out(each) for each in installed],
        errors=[_build_version_out(each) for each in errors],
    )


def _build_installed_out(each: InstalledTool) -> InstalledOut:
    return InstalledOut(
        host=each.host.name,
        path=each.path,
        version=each.version,
        features=list(each.features),
        fit=each.fit,
        reason=each.reason,
    )


def _build_version_out(each: ToolErrors) -> VersionErrorsOut:
    return VersionErrorsOut(
        version=each.version, errors=[_build_error_out(one) for one in each.errors]
    )


def _build_error_out(one: MetricError) -> MetricErrorOut:
    return MetricErrorOut(
        metric=one.metric.key, median=one.median, low=one.low, high=one.high, trials=one.trials
    )
