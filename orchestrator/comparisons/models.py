"""Stored verdicts of ended runs, for lists of runs."""

from django.db import models

from orchestrator.runs.models import Run


class RunVerdict(models.Model):
    """The verdicts of an ended run, stored by a periodic task.

    `cards`: [id of the baseline, id of the contender, verdict, summary, excluded blocks, suspect
    blocks, changed cases, verdicts of all cases, number of cases with each verdict] for each
    measured contender.
    """

    run = models.OneToOneField(
        Run, on_delete=models.CASCADE, primary_key=True, related_name="verdict"
    )
    cards = models.JSONField()

    def __str__(self) -> str:
        return f"{len(self.cards)} verdicts of {self.run_id}"
