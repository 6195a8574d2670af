"""Notes of people at commits of histories."""

from django.db import models
from django.db.models import Q

from orchestrator.accounts.models import User
from orchestrator.benchmarks.models import Benchmark, Case, Commit, Project
from orchestrator.core.ids import new_id
from orchestrator.results.models.series import Series


class Annotation(models.Model):
    """A note at a commit, for one series, or for all series of a case or of a benchmark.

    With none of the three it is for the whole project. `project` is the commit's project, so that
    one index finds all.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="annotations")
    benchmark = models.ForeignKey(
        Benchmark, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    case = models.ForeignKey(
        Case, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    series = models.ForeignKey(
        Series, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="+")
    text = models.TextField()
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()
    edited_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    edited_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=(
                    Q(case__isnull=True, series__isnull=True)
                    | Q(benchmark__isnull=True, series__isnull=True)
                    | Q(benchmark__isnull=True, case__isnull=True)
                ),
                name="annotation_of_one_thing",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.text[:40]} at {self.commit_id}"
