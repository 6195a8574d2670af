import django.db.models.deletion
import orchestrator.core.ids
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0002_initial"),
        ("benchmarks", "0001_initial"),
        ("fleet", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ReferenceSource",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=orchestrator.core.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                (
                    "origin",
                    models.TextField(blank=True, help_text="Its address, or words that find it."),
                ),
                ("format", models.CharField(max_length=40)),
                ("imported_at", models.DateTimeField(help_text="Of the last import.")),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reference_sources",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="ReferenceResult",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=32)),
                ("position", models.PositiveIntegerField(help_text="In the order of the file.")),
                ("suite", models.CharField(blank=True, max_length=300)),
                (
                    "environment",
                    models.CharField(
                        blank=True, help_text="The machine, as the source names it.", max_length=300
                    ),
                ),
                ("parameters", models.JSONField(default=dict)),
                ("metric", models.CharField(max_length=300)),
                ("unit", models.CharField(blank=True, max_length=60)),
                (
                    "better",
                    models.CharField(
                        blank=True, help_text="higher, lower, or unknown.", max_length=6
                    ),
                ),
                ("statistic", models.CharField(blank=True, max_length=60)),
                ("value", models.FloatField(null=True)),
                ("sentinel", models.CharField(blank=True, max_length=100)),
                ("measured_at", models.DateTimeField(null=True)),
                ("commit", models.CharField(blank=True, max_length=300)),
                (
                    "profile",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="reference_results",
                        to="fleet.hardwareprofile",
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="results",
                        to="reports.referencesource",
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
            },
        ),
        migrations.CreateModel(
            name="SavedReport",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.SlugField(max_length=60)),
                ("title", models.CharField(max_length=200)),
                ("source", models.TextField()),
                ("shows_hardware", models.BooleanField(db_default=False, default=False)),
                ("shows_published", models.BooleanField(db_default=False, default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reports",
                        to="benchmarks.benchmark",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_reports",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["title"],
            },
        ),
        migrations.AddConstraint(
            model_name="referencesource",
            constraint=models.UniqueConstraint(
                fields=("team", "name"), name="reference_source_name_once"
            ),
        ),
        migrations.AddIndex(
            model_name="referenceresult",
            index=models.Index(fields=["source", "position"], name="reference_by_position"),
        ),
        migrations.AddConstraint(
            model_name="referenceresult",
            constraint=models.UniqueConstraint(
                fields=("source", "key"), name="reference_result_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="referenceresult",
            constraint=models.CheckConstraint(
                condition=models.Q(("better__in", ["higher", "lower", ""])),
                name="reference_better_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="referenceresult",
            constraint=models.CheckConstraint(
                condition=models.Q(("value__isnull", True), ("sentinel", ""), _connector="OR"),
                name="reference_sentinel_is_no_value",
            ),
        ),
        migrations.AddConstraint(
            model_name="savedreport",
            constraint=models.UniqueConstraint(
                fields=("team", "slug"), name="saved_report_slug_once"
            ),
        ),
    ]
