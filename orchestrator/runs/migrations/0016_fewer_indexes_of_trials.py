import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


def _constraint(*columns: str) -> list[str]:
    """Once a block, over these columns: its index is made first, while others read and write."""
    return [
        "DROP INDEX CONCURRENTLY IF EXISTS trial_once_to_be",
        f"CREATE UNIQUE INDEX CONCURRENTLY trial_once_to_be ON runs_trial ({', '.join(columns)})",
        # The index gets the name of its constraint.
        "ALTER TABLE runs_trial DROP CONSTRAINT trial_once_a_block, "
        "ADD CONSTRAINT trial_once_a_block UNIQUE USING INDEX trial_once_to_be",
    ]


def _without(name: str, column: str) -> migrations.RunSQL:
    """The index that a field has by itself."""
    return migrations.RunSQL(
        f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
        [
            f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
            f"CREATE INDEX CONCURRENTLY {name} ON runs_trial ({column})",
        ],
    )


class Migration(migrations.Migration):
    """The constraint leads from a variant to its trials; those without a host are in no index of
    hosts. Broken off and started again, it begins anew."""

    atomic = False

    dependencies = [
        ("benchmarks", "0006_public_projects_and_shared_links"),
        ("fleet", "0005_host_checks"),
        ("runs", "0015_sealed_job_secrets"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    _constraint("variant_id", "case_id", "job_id", "round"),
                    _constraint("job_id", "case_id", "variant_id", "round"),
                ),
                _without("runs_trial_variant_id_f7946fea", "variant_id"),
            ],
            state_operations=[
                migrations.RemoveConstraint("trial", "trial_once_a_block"),
                migrations.AddConstraint(
                    "trial",
                    models.UniqueConstraint(
                        fields=["variant", "case", "job", "round"], name="trial_once_a_block"
                    ),
                ),
                migrations.AlterField(
                    "trial",
                    "variant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="trials",
                        to="runs.variant",
                    ),
                ),
            ],
        ),
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS trial_stored_by_host", migrations.RunSQL.noop
        ),
        AddIndexConcurrently(
            "trial",
            models.Index(
                condition=models.Q(host__isnull=False),
                fields=["host"],
                name="trial_stored_by_host",
            ),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[_without("runs_trial_host_id_29f1a402", "host_id")],
            state_operations=[
                migrations.AlterField(
                    "trial",
                    "host",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        help_text="Where the server ran; null until the trial is stored.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="trials",
                        to="fleet.host",
                    ),
                ),
            ],
        ),
    ]
