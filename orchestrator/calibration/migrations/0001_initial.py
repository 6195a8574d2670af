import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("fleet", "0001_initial"),
        ("runs", "0001_initial"),
    ]

    operations = [
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
                            ("slow drift", "Slow drift"),
                            ("unusual", "Measured again"),
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
                                [
                                    "learning",
                                    "steady",
                                    "slow drift",
                                    "unusual",
                                    "drifted",
                                    "failed",
                                    "not judged",
                                ],
                            )
                        ),
                        name="golden_verdict_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("is_reference", False),
                            ("verdict__in", ["learning", "steady", "slow drift"]),
                            _connector="OR",
                        ),
                        name="golden_reference_was_steady",
                    ),
                ],
            },
        ),
    ]
