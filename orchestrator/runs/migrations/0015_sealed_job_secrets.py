"""The secrets of jobs that are at work are sealed; no other job needs its own any more."""

from typing import Any

from django.db import migrations, models

import orchestrator.core.ids
from orchestrator.accounts.vault import seal, unseal

ACTIVE = ("preparing", "measuring")
WHILE_ACTIVE = models.Q(("sealed_secret__isnull", True), ("state__in", ["measuring", "preparing"]), _connector="OR")


def seal_all(apps: Any, schema_editor: Any) -> None:
    for job in _active(apps):
        job.sealed_secret = seal(job, "sealed_secret", job.secret)
        job.save(update_fields=["sealed_secret"])


def unseal_all(apps: Any, schema_editor: Any) -> None:
    for job in _active(apps):
        job.secret = unseal(job, "sealed_secret") if job.sealed_secret else orchestrator.core.ids.new_hex()
        job.save(update_fields=["secret"])


def _active(apps: Any) -> Any:
    return apps.get_model("runs", "Job").objects.filter(state__in=ACTIVE).only("pk", "secret", "sealed_secret")


class Migration(migrations.Migration):

    dependencies = [("runs", "0014_a_job_leads_to_its_trials")]

    operations = [
        migrations.AddField(
            model_name='job',
            name='sealed_secret',
            field=models.BinaryField(help_text='By it the hosts of an active job know each other.', null=True),
        ),
        migrations.RunPython(seal_all, unseal_all),
        migrations.RemoveField(model_name='job', name='secret'),
        migrations.AddConstraint(
            model_name='job',
            constraint=models.CheckConstraint(condition=WHILE_ACTIVE, name='job_secret_while_active'),
        ),
    ]
