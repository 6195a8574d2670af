"""Former cases of a benchmark: they can be hidden from the choices of pages, and shown again.

A case of the newest definition cannot be hidden, because runs measure it: remove it there first.
"""

from django.db import transaction
from django.db.models import QuerySet

from orchestrator.accounts.members import Member
from orchestrator.accounts.models import Role
from orchestrator.accounts.services import record_audit
from orchestrator.benchmarks.models import Benchmark, Case
from orchestrator.benchmarks.selectors import get_stored_spec, load_case
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import ConflictError


def load_former_cases(benchmark: Benchmark) -> QuerySet[Case]:
    """Return the cases that the newest definition does not contain, with hidden ones."""
    return benchmark.cases.exclude(key__in=_list_present_keys(benchmark)).order_by("label")


@transaction.atomic
def set_case_hidden(*, member: Member, benchmark: Benchmark, key: str, hidden: bool) -> Case:
    """Hide a case or show it again. Raise ConflictError to hide a case that runs measure."""
    member.require(Role.MEMBER, to="hide a case")
    case = load_case(benchmark, key)
    if hidden and case.key in _list_present_keys(benchmark):
        raise ConflictError(
            f"{case.label} is a case of the newest definition: remove it there before you hide it"
        )
    if hidden != (case.hidden_at is not None):
        case.hidden_at = utc_now() if hidden else None
        case.save(update_fields=["hidden_at"])
        action = "case.hidden" if hidden else "case.shown"
        record_audit(member=member, action=action, subject=f"{benchmark.slug}: {case.label}")
    return case


def _list_present_keys(benchmark: Benchmark) -> list[str]:
    newest = benchmark.definitions.order_by("-version").first()
    return [] if newest is None else [case.key for case in get_stored_spec(newest).cases]
