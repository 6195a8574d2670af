"""The provenance of a report: hosts, commits, definition, tools, times, trials."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, Min, QuerySet

from cli.pitwall.units import format_items
from orchestrator.benchmarks.review import list_requirements
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.fleet.fact_texts import format_fact_value
from orchestrator.fleet.models import Host, HostSnapshot
from orchestrator.measurements.validity_issues import count_validity_issues
from orchestrator.reports.hardware import Machine, list_machines, load_snapshots
from orchestrator.reports.pivot_model import FEWEST_VALID, WORDS
from orchestrator.reports.report_builder import Report
from orchestrator.runs.models import Trial
from orchestrator.runs.states import Validity

#: The facts of a host in the provenance, and their titles.
_FACTS: Mapping[str, str] = {
    "cpu_model": "CPU",
    "cores": "Cores",
    "threads": "Threads",
    "memory_bytes": "Memory",
    "os_name": "Operating system",
    "os_version": "Version",
    "kernel": "Kernel",
    "machine": "Architecture",
    "virtualisation": "Virtualisation",
    "governor": "Governor",
    "turbo": "Turbo",
    "smt": "SMT",
    "power_source": "Power",
    "tuning": "Tuning",
}

#: More builds are only counted: a benchmark with many systems has one for each of them.
MAX_BUILDS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProvenance:
    """`facts`: (title, text), including the reason for missing ones.

    `required`: name and version of the programs that the definition requires, as far as known.
    """

    name: str
    facts: tuple[tuple[str, str], ...]
    required: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """`facts`: (title, text) of the whole report. `missing`: each reason with its rows.

    `machines`: the table of hardware.
    """

    facts: tuple[tuple[str, str], ...]
    machines: tuple[Machine, ...]
    hosts: tuple[HostProvenance, ...]
    missing: tuple[str, ...]


def load_provenance(report: Report) -> Provenance:
    """Return the provenance of a report's trials, with a fixed number of queries.

    A report for a visitor has no hosts here, in any format, and machines only if it may show them.
    """
    counted = Trial.objects.filter(pk__in=report.trials)
    snapshots = load_snapshots(report) if report.with_hardware else {}
    hosts = report.hosts if report.with_host_facts else ()
    required = list_requirements(read_spec(report.definition))
    return Provenance(
        facts=tuple(_list_facts(report, counted)),
        machines=tuple(list_machines(report, snapshots)) if report.with_hardware else (),
        hosts=tuple(_build_host(host, snapshots.get(host.pk), required) for host in hosts),
        missing=tuple(_list_missing(report)),
    )


def _list_facts(report: Report, counted: QuerySet[Trial]) -> Iterator[tuple[str, str]]:
    benchmark = report.benchmark
    versions = ", ".join(map(str, report.versions)) or str(report.definition.version)
    yield "Benchmark", f"{benchmark.title} (`{benchmark.project.slug}/{benchmark.slug}`)"
    yield "Definition", f"version {versions}; the newest one's digest {report.definition.digest}"
    for commit in report.commits:
        yield "Commit", f"`{commit.sha}` {commit.subject}"
    times = counted.aggregate(first=Min("started_at"), last=Max("ended_at"))
    if times["first"] and times["last"]:
        yield "Measured", f"{times['first']:%Y-%m-%d %H:%M} to {times['last']:%Y-%m-%d %H:%M} UTC"
    runs = list(counted.values_list("job__run_id", flat=True).distinct().order_by("job__run_id"))
    yield "Load of the definition", f"{_load(report)}; {format_items(len(runs), 'run')}"
    yield "Trials", _format_outcomes(report)
    suspect = counted.filter(validity=Validity.SUSPECT).values_list("reasons", flat=True)
    if issues := count_validity_issues(list(suspect)):
        counted_issues = (f"{each.title} ({format_items(each.trials, 'trial')})" for each in issues)
        yield "Suspect for", "; ".join(counted_issues)
    if builds := list(_list_builds(counted)):
        yield "Builds", "; ".join(builds)
    shown = (("Load tool", "tool"), ("Protocol", "protocol"), ("Network", "network__title"))
    for title, key in shown:
        values = list(_list_reported_values(counted, key))
        if values:
            yield title, "; ".join(values)
    yield "Runs", ", ".join(f"`{run}`" for run in runs) or "none"


def _list_builds(counted: QuerySet[Trial]) -> Iterator[str]:
    """Yield the digest of each build, at most MAX_BUILDS of them."""
    rows = counted.values_list("variant__commit__sha", "provenance__build__digest").distinct()
    known = sorted({(sha, str(digest)) for sha, digest in rows.order_by() if digest})
    for sha, digest in known[:MAX_BUILDS]:
        yield f"`{sha[:10]}` SHA-256 {digest}"
    if len(known) > MAX_BUILDS:
        yield f"{len(known) - MAX_BUILDS} more, in the provenance of the trials"


def _format_outcomes(report: Report) -> str:
    """Return `90 valid, 3 suspect, 2 invalid, 5 unsupported; …`."""
    known = (
        "valid", "suspect", "invalid", "failed", "unsupported", "skipped", "not needed", "planned",
    )  # fmt: skip
    counts = [f"{report.outcomes[each]} {each}" for each in known if report.outcomes.get(each)]
    use = "values use only valid and suspect ones"
    if report.spec.suspect_trials == "exclude":
        use = f"values use suspect ones only in cells with fewer than {FEWEST_VALID} valid ones"
    return f"{', '.join(counts) or 'none'}; {use}"


def _load(report: Report) -> str:
    """Return the load of the newest definition; options of some cases may differ."""
    spec = read_spec(report.definition)
    load = spec.load
    ends = _format_amount(load.duration_s, "s")
    if load.requests is not None:
        ends = _format_amount(load.requests, "requests")
    warmup = f"warm-up {load.warmup_s:g} s"
    rounds = format_items(spec.rounds, "round")
    return f"{ends}, {warmup}, {rounds}, {spec.cooldown_s:g} s between trials"


def _format_amount(number: float | str | None, unit: str) -> str:
    return (
        f"{number:g} {unit}" if isinstance(number, int | float) else f"{unit} depending on the case"
    )


def _list_reported_values(counted: QuerySet[Trial], key: str) -> Iterator[str]:
    """Return the texts of the trials' provenance with this key, the most frequent first."""
    rows = counted.values_list(f"provenance__{key}").annotate(trials=Count("pk"))
    for value, trials in sorted(rows, key=lambda row: (-row[1], str(row[0]))):
        if value:
            yield (
                f"{_format_tool(value) if isinstance(value, Mapping) else value} "
                f"({format_items(trials, 'trial')})"
            )


def _format_tool(tool: Mapping[str, Any]) -> str:
    digest = str(tool.get("sha256") or "")
    words = [str(tool.get("name") or "unknown"), str(tool.get("version") or "")]
    return " ".join(filter(None, [*words, f"SHA-256 {digest}" if digest else ""]))


def _build_host(
    host: Host, snapshot: HostSnapshot | None, required: Container[str]
) -> HostProvenance:
    facts = [("Hardware profile", host.profile.name)]
    if snapshot is None:
        return HostProvenance(name=host.name, facts=(*facts, ("Facts", "none were stored")))
    facts += [(title, _format_fact(key, snapshot.facts)) for key, title in _FACTS.items()]
    facts.append(("Fingerprint", snapshot.fingerprint))
    programs = list(_list_programs(snapshot.facts))
    for title, versions in programs:
        facts.append((title, ", ".join(f"{name} {text}" for name, text in versions)))
    return HostProvenance(
        name=host.name,
        facts=tuple(facts),
        required=tuple(
            f"{name} {text}"
            for _, versions in programs
            for name, text in versions
            if name in required
        ),
    )


def _format_fact(key: str, facts: Mapping[str, Any]) -> str:
    value = facts.get(key)
    if value is None or value == "":
        why = (facts.get("reasons") or {}).get(key)
        return f"unknown ({why})" if why else "unknown"
    return format_fact_value(key, value)


def _list_programs(facts: Mapping[str, Any]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the title of each group, and (name, version) of its programs."""
    for group in ("languages", "programs", "tools"):
        versions = list(_list_versions(facts.get(group)))
        if versions:
            yield group.capitalize(), versions


def _list_versions(programs: object) -> Iterator[tuple[str, str]]:
    """Return (name, version) of the programs of the host."""
    for name, entry in sorted(programs.items()) if isinstance(programs, Mapping) else ():
        version = entry.get("version") if isinstance(entry, Mapping) else entry
        if version:
            yield str(name), str(version).splitlines()[0]


def _list_missing(report: Report) -> Iterator[str]:
    """Yield each reason with its rows, or with its columns if the rows are metrics."""
    where: dict[str, dict[str, None]] = {}
    unmeasured = 0
    for table in report.tables:
        by_metric = any(head.dimension == "metric" for head in table.heads)
        for row in table.rows:
            for cell, column in zip(row.cells, table.columns, strict=True):
                unmeasured += cell.kind == "unmeasured"
                if cell.value is None and cell.kind not in ("absent", "unmeasured"):
                    name = column.title if by_metric else ", ".join(filter(None, row.heads))
                    where.setdefault(f"{WORDS[cell.kind]}: {cell.reason}", {})[name] = None
    for why, names in where.items():
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        yield f"{why} – {'; '.join(list(names)[:8])}{more}"
    if unmeasured:
        yield f"{unmeasured} cells were not measured, as their cases were not selected"
