import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("benchmarks", "0001_initial"),
        ("fleet", "0001_initial"),
        ("results", "0001_initial"),
        ("runs", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Calibration",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "epoch",
                    models.PositiveIntegerField(help_text="Changes of the host that came before."),
                ),
                ("readings", models.JSONField(default=dict)),
                ("message", models.TextField(blank=True)),
                ("at", models.DateTimeField()),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="calibrations",
                        to="benchmarks.benchmark",
                    ),
                ),
                (
                    "commit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="benchmarks.commit",
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="calibrations",
                        to="fleet.host",
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="calibration",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["host", "-at"], name="calibration_by_host")],
            },
        ),
        migrations.CreateModel(
            name="GoldenOutcome",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("learning", "Learning"),
                            ("steady", "Steady"),
                            ("drifted", "Drifted"),
                            ("failed", "Failed"),
                            ("not judged", "Not judged"),
                        ],
                        max_length=10,
                    ),
                ),
                ("readings", models.JSONField(default=dict)),
                (
                    "epoch",
                    models.PositiveIntegerField(help_text="Changes of the host that came before."),
                ),
                ("is_reference", models.BooleanField()),
                ("message", models.TextField(blank=True)),
                ("at", models.DateTimeField()),
                (
                    "host",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="golden_outcomes",
                        to="fleet.host",
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="golden_outcome",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["host", "-at"], name="golden_outcome_by_host")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "verdict__in",
                                ["learning", "steady", "drifted", "failed", "not judged"],
                            )
                        ),
                        name="golden_verdict_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("is_reference", False),
                            ("verdict__in", ["learning", "steady"]),
                            _connector="OR",
                        ),
                        name="golden_reference_was_steady",
                    ),
                ],
            },
        ),
        # Measured data is insert-only.
        migrations.RunSQL(
            "CREATE TRIGGER insert_only BEFORE UPDATE ON calibration_calibration "
            "FOR EACH ROW EXECUTE FUNCTION pitwall_refuse_update();",
            "DROP TRIGGER insert_only ON calibration_calibration;",
        ),
    ]
