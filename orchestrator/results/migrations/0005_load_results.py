"""The loads of trials that have several: steps, and probes of a search."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("results", "0004_calibration"),
        ("runs", "0004_calibration_trigger"),
    ]

    operations = [
        migrations.CreateModel(
            name="LoadResult",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveSmallIntegerField()),
                (
                    "rate",
                    models.FloatField(
                        help_text="Offered, requests a second; null if closed.", null=True
                    ),
                ),
                ("connections", models.PositiveIntegerField()),
                ("streams", models.PositiveIntegerField()),
                ("passed", models.BooleanField(null=True)),
                ("why", models.TextField(blank=True)),
                ("validity", models.CharField(max_length=8)),
                ("reasons", models.JSONField(default=list)),
                ("readings", models.JSONField(default=dict)),
                ("encoded", models.BinaryField()),
                (
                    "trial",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="load_results",
                        to="runs.trial",
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "constraints": [
                    models.UniqueConstraint(fields=("trial", "number"), name="load_result_once"),
                    models.CheckConstraint(
                        condition=models.Q(("validity__in", ["valid", "suspect", "invalid"])),
                        name="load_result_validity_known",
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            "CREATE TRIGGER insert_only BEFORE UPDATE ON results_loadresult "
            "FOR EACH ROW EXECUTE FUNCTION pitwall_refuse_update();",
            "DROP TRIGGER insert_only ON results_loadresult;",
        ),
    ]
