"""Saved reports of a team: reads and writes."""

import re

from django.db import transaction
from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.models import Benchmark
from orchestrator.core.errors import ConflictError, InvalidRequestError, NotFoundError
from orchestrator.reports.models import SavedReport
from orchestrator.reports.report_builder import load_report_benchmark
from orchestrator.reports.report_spec import ReportSpec, parse, parse_all, to_yaml

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}\Z")
#: Names that are used by URLs of other pages.
_TAKEN = frozenset({"new", "save"})


def load_saved_reports(member: Member) -> QuerySet[SavedReport]:
    rows = SavedReport.objects.filter(member.sees("benchmark__project", team="team"))
    return rows.select_related("benchmark__project", "created_by")


def load_saved_report(member: Member, slug: str) -> SavedReport:
    report = load_saved_reports(member).filter(slug=slug).first()
    if report is None:
        raise NotFoundError(f"the team has no report {slug}; check the spelling and the team")
    return report


def read_report_spec(report: SavedReport) -> ReportSpec:
    """Return the specification as it was saved; its benchmark is always named in full."""
    return _bind_benchmark(parse(report.source), report.benchmark)


def save_report(
    *, member: Member, source: str, slug: str | None = None, replace: str | None = None
) -> SavedReport:
    """Save a report as `slug`, or with the name in its text.

    `replace`: the name of the report to replace. ConflictError if another one has the name already;
    InvalidRequestError with the path of an error in the text.
    """
    member.require(Role.MEMBER, to="save a report")
    spec = parse(source)
    name = slug or spec.name or ""
    if not _NAME.match(name) or name in _TAKEN:
        raise InvalidRequestError(
            "name: give the report a short name of lower-case letters, digits and dashes",
            field="name",
        )
    benchmark = load_report_benchmark(member, spec)
    with transaction.atomic():
        if replace is not None:
            return _store_change(member, replace, name, spec, benchmark, source)
        if member.team.saved_reports.filter(slug=name).exists():
            raise ConflictError(f"the team already has a report {name}; choose another name")
        report = SavedReport.objects.create(
            team=member.team,
            slug=name,
            title=spec.title,
            benchmark=benchmark,
            source=source,
            created_by=member.user,
        )
        record_audit(member=member, action="report.created", subject=report.slug)
    return report


def save_suite_reports(*, member: Member, benchmark: Benchmark, source: str) -> list[SavedReport]:
    """Save all reports of a suite's `report.yaml` as reports of this benchmark.

    Reports of this benchmark with the same names are replaced. If a report of another benchmark has
    the name, the new name is prefixed with the benchmark's.
    """
    reports = []
    for number, spec in enumerate(parse_all(source), start=1):
        spec = _bind_benchmark(spec, benchmark)
        name = spec.name or (benchmark.slug if number == 1 else f"{benchmark.slug}-{number}")
        before = member.team.saved_reports.filter(slug=name).first()
        if before is not None and before.benchmark != benchmark:
            name = f"{benchmark.project.slug}-{name}"[:60]
            before = member.team.saved_reports.filter(slug=name).first()
        replace = None if before is None else name
        reports.append(save_report(member=member, source=to_yaml(spec), slug=name, replace=replace))
    return reports


@transaction.atomic
def delete_report(*, member: Member, slug: str) -> None:
    member.require(Role.MEMBER, to="delete a report")
    deleted, _ = load_saved_reports(member).filter(slug=slug).delete()
    if not deleted:
        raise NotFoundError(f"the team has no report {slug}; check the spelling and the team")
    record_audit(member=member, action="report.deleted", subject=slug)


def _bind_benchmark(spec: ReportSpec, benchmark: Benchmark) -> ReportSpec:
    return spec.model_copy(update={"benchmark": f"{benchmark.project.slug}/{benchmark.slug}"})


def _store_change(
    member: Member, old: str, new: str, spec: ReportSpec, benchmark: Benchmark, source: str
) -> SavedReport:
    report = load_saved_reports(member).select_for_update(of=("self",)).filter(slug=old).first()
    if report is None:
        raise NotFoundError(f"the team has no report {old}; check the spelling and the team")
    if new != old and member.team.saved_reports.filter(slug=new).exists():
        raise ConflictError(f"the team already has a report {new}; choose another name")
    if report.benchmark_id != benchmark.pk:
        # What a maintainer allowed was for the hosts and reference results of the other one.
        report.shows_hardware = report.shows_published = False
    report.slug, report.title, report.benchmark = new, spec.title, benchmark
    report.source = source
    report.save()
    record_audit(member=member, action="report.changed", subject=report.slug)
    return report
