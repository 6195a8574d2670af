"""The judged claims of a report for its page."""

from dataclasses import dataclass

from orchestrator.reports.claim_exports import (
    TITLE,
    Difference,
    build_claim_notes,
    format_measured,
    list_differences,
)
from orchestrator.reports.claims import Conclusion, JudgedClaim
from orchestrator.reports.provenance import Provenance
from orchestrator.reports.report_builder import Report

#: Conclusion → the state of its badge.
_STATES = {
    Conclusion.HOLDS: "passed",
    Conclusion.FAILS: "missed",
    Conclusion.OPEN: "undecided",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimView:
    judged: JudgedClaim
    measured: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimsView:
    """`names_hosts`: whether several hosts were measured."""

    title: str
    claims: tuple[ClaimView, ...]
    notes: tuple[str, ...]
    differences: tuple[Difference, ...]
    names_hosts: bool


def build_claims_view(report: Report, record: Provenance) -> ClaimsView | None:
    """Return the claims of a report with what differs from the original; None without claims."""
    judged = report.claims.claims
    if not judged:
        return None
    return ClaimsView(
        title=TITLE,
        claims=tuple(
            ClaimView(
                judged=each,
                measured=format_measured(each),
                state=_STATES[each.conclusion],
            )
            for each in judged
        ),
        notes=build_claim_notes(report.claims),
        differences=tuple(list_differences(report, record)),
        names_hosts=len({each.host for each in judged if each.host}) > 1,
    )
