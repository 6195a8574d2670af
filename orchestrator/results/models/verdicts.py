"""What became of runs, as lists show it."""

from django.db import models

from orchestrator.runs.models import Run


class RunVerdict(models.Model):
    """The verdicts of a run that has ended, kept from when somebody looked first.

    `cards`: [id of the baseline, id of the contender, verdict, summary, blocks left out, blocks in
    doubt] for each contender that was measured. It goes when another trial arrives.
    """

    run = models.OneToOneField(
        Run, on_delete=models.CASCADE, primary_key=True, related_name="verdict"
    )
    cards = models.JSONField()

    def __str__(self) -> str:
        return f"{len(self.cards)} verdicts of {self.run_id}"
