"""Two commits side by side: paired blocks in, verdicts out. The statistics are in `stats`."""

from collections.abc import Mapping

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.loads import primary_of
from orchestrator.benchmarks.models import Benchmark, Case, Commit
from orchestrator.benchmarks.selectors import spec_of
from orchestrator.core.errors import InvalidRequestError, NotFoundError
from orchestrator.core.units import format_change
from orchestrator.fleet.models import Host
from orchestrator.loadtools.metrics import METRICS, PRIMARY, Metric, metrics_of
from orchestrator.results.blocks import Blocks, Cell, CellKey, blocks_of
from orchestrator.results.distributions import latency_curve
from orchestrator.results.doubts import doubts_in
from orchestrator.results.readings import values_of
from orchestrator.results.reports import CaseComparison, ComparisonReport, MetricComparison
from orchestrator.runs.models import Run
from orchestrator.stats.comparison import Comparison, Verdict, compare_blocks
from orchestrator.stats.matrix import Headline, MatrixVerdict, judge_matrix

#: A comparison of which more than this share of the blocks is void is not to be believed.
MAX_VOIDED_SHARE = 0.3

_SENTENCES = {
    Verdict.REGRESSED: "{contender} is a regression: {change}.",
    Verdict.IMPROVED: "{contender} is an improvement: {change}.",
    Verdict.TRIVIAL: "{contender} changed something, but less than matters: {change}.",
    Verdict.EQUIVALENT: "{contender} performs the same: any change is proven to be within margin.",
    Verdict.INCONCLUSIVE: "Not decided yet for {contender}: {change}.",
}


def compare_commits(
    member: Member,
    *,
    benchmark: Benchmark,
    baseline: Commit,
    contender: Commit,
    run: Run | None = None,
) -> ComparisonReport:
    """The comparison of two commits from all blocks in which both were measured.

    NotFoundError where they never were measured together: numbers from different times of a
    machine are no evidence about a commit. InvalidRequestError for a commit against itself.
    """
    if baseline == contender:
        raise InvalidRequestError(
            f"{baseline.short_sha} cannot be compared with itself; name another commit",
            field="contender",
        )
    blocks = blocks_of(benchmark, baseline, contender, run)
    if benchmark.project.team_id != member.team.pk or blocks is None:
        raise NotFoundError(
            f"{baseline.short_sha} and {contender.short_sha} were never measured together, so "
            "they cannot be compared; start a run with both of them"
        )
    spec = spec_of(blocks.definition)
    primary = primary_of(spec)
    open_loop = primary == PRIMARY["open"]
    compared = {_name(key): _compare_cell(cell) for key, cell in blocks.cells.items()}
    judged = judge_matrix(compared, primary=primary)
    return ComparisonReport(
        benchmark=benchmark,
        baseline=baseline,
        contender=contender,
        verdict=judged.verdict,
        summary=_summary(judged.headline, contender),
        cases=_cases(blocks.cells, compared, judged, open_loop),
        notes=_notes(blocks),
    )


def commits_measured(member: Member, benchmark: Benchmark) -> list[Commit]:
    """The commits with at least one measured trial, newest first."""
    commits = benchmark.project.commits.filter(
        project__team=member.team,
        variants__run__definition__benchmark=benchmark,
        variants__trials__state="measured",
    ).distinct()
    place = {commit: (commit.position or -1, commit.committed_at) for commit in commits}
    return sorted(place, key=place.__getitem__, reverse=True)


def _name(key: CellKey) -> str:
    return f"{key[0]} {key[1]}"


def _compare_cell(cell: Cell) -> dict[str, Comparison]:
    """Every metric to be judged that has values on both sides of some block, in registry order."""
    trials = [trial for pair in cell.pairs for trial in pair]
    values = values_of(trials)
    found = {}
    for info in metrics_of(set().union(*values.values())):
        key = info.key
        if info.informational:
            continue
        before = [values[trial].get(key) for trial, _ in cell.pairs]
        after = [values[trial].get(key) for _, trial in cell.pairs]
        if any(a is not None and b is not None for a, b in zip(before, after, strict=True)):
            found[key] = compare_blocks(before, after, better=info.better, margin=info.margin)
    return found


def _cases(
    cells: Mapping[CellKey, Cell],
    compared: Mapping[str, Mapping[str, Comparison]],
    judged: MatrixVerdict,
    open_loop: bool,
) -> tuple[CaseComparison, ...]:
    cases = Case.objects.in_bulk([case for _, case in cells])
    hosts = Host.objects.in_bulk([host for host, _ in cells])
    reports = [
        CaseComparison(
            case=cases[key[1]],
            host=hosts[key[0]],
            verdict=judged.cases[_name(key)],
            metrics=_metrics(_name(key), compared[_name(key)], judged),
            baseline_latency=latency_curve([before for before, _ in cell.pairs]),
            contender_latency=latency_curve([after for _, after in cell.pairs]),
            voided_blocks=cell.voided,
            suspect_blocks=cell.suspect,
            doubts=doubts_in(cell.reasons),
            open_loop=open_loop,
        )
        for key, cell in cells.items()
    ]
    attention = {verdict: rank for rank, verdict in enumerate(Verdict)}
    return tuple(sorted(reports, key=lambda r: (attention[Verdict(r.verdict)], r.case.label)))


def _metrics(
    name: str, compared: Mapping[str, Comparison], judged: MatrixVerdict
) -> tuple[MetricComparison, ...]:
    infos = metrics_of(compared)
    rows = [_metric(info, name, compared[info.key], judged) for info in infos]
    return tuple(sorted(rows, key=lambda row: not row.primary))


def _metric(info: Metric, name: str, each: Comparison, judged: MatrixVerdict) -> MetricComparison:
    primary = (name, info.key) in judged.cells
    return MetricComparison(
        key=info.key,
        title=info.title,
        unit=info.unit,
        better=info.better,
        primary=primary,
        margin=info.margin,
        baseline=each.baseline,
        contender=each.contender,
        change=each.change,
        interval=None if each.low is None or each.high is None else (each.low, each.high),
        blocks=each.blocks,
        p_value=each.p_value,
        needed_blocks=each.needed_blocks,
        verdict=judged.cells[name, info.key] if primary else each.verdict,
        reasons=each.reasons,
    )


def _summary(headline: Headline, contender: Commit) -> str:
    change = "there are no complete blocks"
    if headline.cell is not None:
        title = METRICS[headline.cell[1]].title
        change = f"{title[0].lower()}{title[1:]} {format_change(headline.change)}"
        if headline.low is not None and headline.high is not None:
            change += f" ({format_change(headline.low)} to {format_change(headline.high)})"
    sentence = _SENTENCES[headline.verdict].format(contender=contender.short_sha, change=change)
    if headline.cases > 1:
        same = headline.counts.get(headline.verdict, 0)
        sentence += f" So {headline.verdict}: {same} of {headline.cases} cases."
    return sentence


def _notes(blocks: Blocks) -> tuple[str, ...]:
    """What a reader must know before believing the numbers."""
    notes = ["Server and load generator shared one machine and talked over loopback."]
    cells = blocks.cells.values()
    voided = sum(cell.voided for cell in cells)
    complete = sum(len(cell.pairs) for cell in cells)
    suspect = sum(cell.suspect for cell in cells)
    if blocks.left_out:
        notes.append(
            f"{blocks.left_out} blocks of other versions of the definition were left out: only "
            f"version {blocks.definition.version} counts here."
        )
    if voided:
        notes.append(f"{voided} of {voided + complete} blocks are void and were left out.")
    if voided > MAX_VOIDED_SHARE * (voided + complete):
        notes.append("More than 30 % of the blocks are void: do not rely on this comparison.")
    if suspect:
        notes.append(f"{suspect} blocks hold a suspect trial; the trials' pages say why.")
    return tuple(notes)
