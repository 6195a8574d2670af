"""Abandoned drafts: benchmarks that were tried and never saved.

They are deleted like other benchmarks, so they can be restored for some days.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from orchestrator.accounts.services import record_system_audit
from orchestrator.benchmarks.models import Benchmark, Definition
from orchestrator.runs.models import Run

#: How long a draft is kept after its latest change or run.
DAYS_KEPT = 30
#: Drafts per task; the next one continues.
DRAFTS = 20


@transaction.atomic
def delete_abandoned_drafts(now: datetime) -> int:
    """Delete some abandoned drafts and return their number; the tasks call it.

    A draft that a member tries or saves at this moment is locked, and left out.
    """
    abandoned = _load_abandoned(now - timedelta(days=DAYS_KEPT))
    drafts = list(abandoned.select_for_update(of=("self",), skip_locked=True)[:DRAFTS])
    Benchmark.objects.filter(pk__in=[each.pk for each in drafts]).update(deleted_at=now)
    for draft in drafts:
        record_system_audit(
            team=draft.project.team,
            action="benchmark.deleted",
            subject=f"{draft.project.slug}/{draft.slug}: an abandoned draft",
        )
    return len(drafts)


def _load_abandoned(cutoff: datetime) -> QuerySet[Benchmark]:
    newer = Definition.objects.filter(benchmark=OuterRef("pk"), created_at__gte=cutoff)
    runs = Run.objects.filter(definition__benchmark=OuterRef("pk"), created_at__gte=cutoff)
    drafts = Benchmark.objects.filter(~Exists(newer), ~Exists(runs), is_draft=True)
    rows: QuerySet[Benchmark] = drafts.filter(created_at__lt=cutoff).select_related("project__team")
    return rows.order_by("created_at", "pk")
