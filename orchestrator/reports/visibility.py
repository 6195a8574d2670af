"""What visitors see of a saved report, beyond its values; only a maintainer can change it."""

from dataclasses import dataclass

from django.db import transaction

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.core.errors import NotFoundError
from orchestrator.reports.models import SavedReport
from orchestrator.reports.saved_reports import load_saved_reports


@dataclass(frozen=True, slots=True, kw_only=True)
class Visibility:
    """Whether visitors see the table of hardware, and reference results."""

    hardware: bool = False
    published: bool = False


HIDDEN = Visibility()


def read_visibility(report: SavedReport) -> Visibility:
    return Visibility(hardware=report.shows_hardware, published=report.shows_published)


@transaction.atomic
def set_visibility(*, member: Member, slug: str, visibility: Visibility) -> SavedReport:
    """Raise NotFoundError if the team has no such report."""
    member.require(Role.MAINTAINER, to="change what visitors see of a report")
    rows = load_saved_reports(member).select_for_update(of=("self",))
    report = rows.filter(slug=slug).first()
    if report is None:
        raise NotFoundError(f"the team has no report {slug}; check the spelling and the team")
    if read_visibility(report) != visibility:
        report.shows_hardware = visibility.hardware
        report.shows_published = visibility.published
        report.save()
        record_audit(member=member, action="report.visibility_changed", subject=report.slug)
    return report
