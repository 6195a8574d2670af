import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
import orchestrator.core.ids
from django.conf import settings
from django.db import migrations, models

# Measured data is insert-only: the database refuses an UPDATE.
INSERT_ONLY = (
    "fleet_hostsnapshot",
    "results_artifact",
    "results_calibration",
    "results_histogram",
    "results_hostbuildnoise",
    "results_loadresult",
    "results_reading",
)
REFUSE_UPDATE = """
CREATE FUNCTION pitwall_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed once written', TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
"""


def _insert_only(table: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"CREATE TRIGGER insert_only BEFORE UPDATE ON {table} "
        "FOR EACH ROW EXECUTE FUNCTION pitwall_refuse_update();",
        f"DROP TRIGGER insert_only ON {table};",
    )


# A point has the position of its commit.
MOVE_POINTS = """
CREATE FUNCTION pitwall_move_points() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE results_point SET position = NEW.position WHERE commit_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER move_points AFTER UPDATE OF position ON benchmarks_commit
    FOR EACH ROW WHEN (OLD.position IS DISTINCT FROM NEW.position)
    EXECUTE FUNCTION pitwall_move_points();
"""
DROP_MOVE_POINTS = """
DROP TRIGGER move_points ON benchmarks_commit;
DROP FUNCTION pitwall_move_points();
"""

# These columns are compressed already. PostgreSQL would compress them again and gain nothing.
COMPRESSED = (
    ("results_artifact", "compressed"),
    ("results_histogram", "encoded"),
    ("results_loadresult", "encoded"),
    ("results_pointhistogram", "encoded"),
)


def _store_as_is(table: str, column: str) -> migrations.RunSQL:
    change = f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE"
    return migrations.RunSQL(f"{change} EXTERNAL;", f"{change} EXTENDED;")


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0002_initial"),
        ("benchmarks", "0001_initial"),
        ("fleet", "0001_initial"),
        ("runs", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
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
            name="ChangedSeries",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "series",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), size=None
                    ),
                ),
                (
                    "not_before",
                    models.DateTimeField(
                        blank=True, help_text="A detection that failed is repeated then.", null=True
                    ),
                ),
                ("failures", models.PositiveSmallIntegerField(db_default=0, default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Series",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="series",
                        to="benchmarks.benchmark",
                    ),
                ),
                (
                    "case",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="series",
                        to="benchmarks.case",
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="series",
                        to="fleet.host",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "series",
            },
        ),
        migrations.CreateModel(
            name="Metric",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("key", models.CharField(max_length=60)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "team",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.team",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Pin",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reason", models.CharField(max_length=200)),
                ("pinned_at", models.DateTimeField(auto_now_add=True)),
                (
                    "commit",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pin",
                        to="benchmarks.commit",
                    ),
                ),
                (
                    "pinned_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pins",
                        to="benchmarks.project",
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pin",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "ordering": ["-pinned_at"],
            },
        ),
        migrations.CreateModel(
            name="PointHistogram",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("ok", "Answered well"), ("other", "Answered otherwise")],
                        max_length=5,
                    ),
                ),
                ("encoded", models.BinaryField()),
                ("count", models.PositiveBigIntegerField()),
                ("trials", models.PositiveIntegerField()),
                ("suspect", models.PositiveIntegerField()),
                ("excluded", models.PositiveIntegerField()),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="point_histograms",
                        to="benchmarks.case",
                    ),
                ),
                (
                    "commit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="point_histograms",
                        to="benchmarks.commit",
                    ),
                ),
                (
                    "definition",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="benchmarks.definition",
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="fleet.host",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Reading",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                ("validity", models.CharField(max_length=8)),
                (
                    "metrics",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), size=None
                    ),
                ),
                (
                    "values",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(), size=None
                    ),
                ),
                ("provenance", models.JSONField(null=True)),
                (
                    "case",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="readings",
                        to="benchmarks.case",
                    ),
                ),
                (
                    "commit",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="readings",
                        to="benchmarks.commit",
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="readings",
                        to="fleet.host",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Removal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("files", "Raw output"),
                            ("distributions", "Distributions of single trials"),
                            ("trials", "Single trials"),
                            ("readings", "Single results from elsewhere"),
                            ("points", "Points of commits between"),
                        ],
                        max_length=13,
                    ),
                ),
                ("after_days", models.PositiveIntegerField(help_text="The retention that held.")),
                ("began_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("rows", models.PositiveBigIntegerField(default=0)),
                ("bytes", models.PositiveBigIntegerField(default=0)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="removals",
                        to="benchmarks.project",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="removals",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "ordering": ["-began_at"],
            },
        ),
        migrations.CreateModel(
            name="ResultImport",
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
                ("project", models.CharField(blank=True, max_length=60)),
                ("name", models.CharField(max_length=100)),
                ("size", models.PositiveBigIntegerField(help_text="Bytes, as it was sent.")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("ready", "Ready to import"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                        ],
                        default="queued",
                        max_length=7,
                    ),
                ),
                ("checked", models.PositiveIntegerField(default=0)),
                ("total", models.PositiveIntegerField(null=True)),
                ("done", models.PositiveIntegerField(default=0)),
                ("accepted", models.PositiveIntegerField(default=0)),
                ("faults", models.JSONField(default=list)),
                ("history", models.JSONField(null=True)),
                ("preview", models.JSONField(null=True)),
                (
                    "unknown_commits",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("keep", "Keep them as reported commits with their dates"),
                            ("skip", "Leave out their results"),
                        ],
                        max_length=4,
                    ),
                ),
                ("converted", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("last_step_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("claim", models.UUIDField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                (
                    "sender",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.team",
                    ),
                ),
                (
                    "token",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.apitoken",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="changedseries",
            name="history_import",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="results.resultimport",
            ),
        ),
        migrations.CreateModel(
            name="ImportPart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("content", models.BinaryField()),
                (
                    "result_import",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="results.resultimport",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Retention",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("files_days", models.PositiveIntegerField(default=90, null=True)),
                ("distributions_days", models.PositiveIntegerField(default=400, null=True)),
                ("trials_days", models.PositiveIntegerField(default=None, null=True)),
                ("points_days", models.PositiveIntegerField(default=None, null=True)),
                ("keep_every", models.PositiveSmallIntegerField(default=None, null=True)),
                ("next_at", models.DateTimeField(null=True)),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="retention",
                        to="benchmarks.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SeriesDetection",
            fields=[
                (
                    "series",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="detection",
                        serialize=False,
                        to="results.series",
                    ),
                ),
                ("at", models.DateTimeField()),
                ("points", models.PositiveIntegerField()),
                ("noise", models.FloatField(help_text="One sigma of a point, as a share.")),
                (
                    "unstable",
                    models.BooleanField(help_text="It shifts so often that no alert is given."),
                ),
                (
                    "outliers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        default=list,
                        help_text="Ids of commits.",
                        size=None,
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="series",
            name="metric",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="series",
                to="results.metric",
            ),
        ),
        migrations.CreateModel(
            name="Point",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "series_id",
                        "commit_id",
                        "epoch",
                        "configuration",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("at", models.DateTimeField(help_text="Of its newest trial.")),
                ("mean", models.FloatField(null=True)),
                ("run_count", models.IntegerField()),
                ("mean_log", models.FloatField(null=True)),
                ("m2_log", models.FloatField(null=True)),
                ("position", models.IntegerField(null=True)),
                ("configuration", models.IntegerField()),
                ("epoch", models.SmallIntegerField()),
                ("trials", models.IntegerField(help_text="Trials that count: valid or suspect.")),
                ("suspect", models.IntegerField()),
                ("invalid", models.IntegerField(help_text="Trials that were left out.")),
                (
                    "values",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(), size=None
                    ),
                ),
                (
                    "blocks",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), size=None
                    ),
                ),
                (
                    "places",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), size=None
                    ),
                ),
                (
                    "runs",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), size=None
                    ),
                ),
                (
                    "builds",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), size=None
                    ),
                ),
                (
                    "commit",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="points",
                        to="benchmarks.commit",
                    ),
                ),
                (
                    "series",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="points",
                        to="results.series",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ChangePoint",
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
                (
                    "kind",
                    models.CharField(
                        choices=[("alert", "Sure"), ("candidate", "Suspected")], max_length=9
                    ),
                ),
                ("change", models.FloatField()),
                ("low", models.FloatField()),
                ("high", models.FloatField()),
                ("p_value", models.FloatField()),
                ("level_before", models.FloatField()),
                ("level_after", models.FloatField()),
                ("regressed", models.BooleanField()),
                ("seen", models.BooleanField(default=True)),
                ("recent", models.BooleanField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Not confirmed"),
                            ("confirming", "Being measured again"),
                            ("confirmed", "Confirmed"),
                            ("small", "Confirmed, small"),
                            ("refuted", "Refuted"),
                            ("dismissed", "Dismissed"),
                            ("superseded", "Superseded"),
                        ],
                        default="open",
                        max_length=10,
                    ),
                ),
                ("final", models.BooleanField(default=False)),
                ("message", models.TextField(blank=True)),
                ("confirmation_runs", models.PositiveSmallIntegerField(default=0)),
                ("confirmed_change", models.FloatField(null=True)),
                ("confirmed_low", models.FloatField(null=True)),
                ("confirmed_high", models.FloatField(null=True)),
                ("confirmed_blocks", models.PositiveIntegerField(null=True)),
                ("confirmed_error", models.FloatField(null=True)),
                ("revisions", models.JSONField(default=list)),
                ("found_at", models.DateTimeField()),
                ("revised_at", models.DateTimeField()),
                (
                    "before",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="benchmarks.commit",
                    ),
                ),
                (
                    "commit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="change_points",
                        to="benchmarks.commit",
                    ),
                ),
                (
                    "culprit",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="benchmarks.commit",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="change_points",
                        to="runs.run",
                    ),
                ),
                (
                    "series",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="change_points",
                        to="results.series",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Baseline",
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
                ("reason", models.TextField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "case",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="baselines",
                        to="benchmarks.case",
                    ),
                ),
                (
                    "commit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="benchmarks.commit",
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
                    "series",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="baselines",
                        to="results.series",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Annotation",
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
                ("text", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("edited_at", models.DateTimeField(blank=True, null=True)),
                (
                    "benchmark",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="benchmarks.benchmark",
                    ),
                ),
                (
                    "case",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="benchmarks.case",
                    ),
                ),
                (
                    "commit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="benchmarks.commit",
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
                    "edited_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="annotations",
                        to="benchmarks.project",
                    ),
                ),
                (
                    "series",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="results.series",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Artifact",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                (
                    "sha256",
                    models.CharField(help_text="Of the content before compression.", max_length=64),
                ),
                ("size", models.PositiveBigIntegerField()),
                ("compressed", models.BinaryField()),
                (
                    "trial",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="artifacts",
                        to="runs.trial",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("trial", "name"), name="artifact_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Bisection",
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
                (
                    "path",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), size=None
                    ),
                ),
                ("answers", models.JSONField(default=list)),
                (
                    "unbuildable",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), blank=True, default=list, size=None
                    ),
                ),
                (
                    "failures",
                    models.JSONField(
                        default=list, help_text="Runs of steps that measured nothing."
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Searching"),
                            ("found", "Found"),
                            ("part", "Some of the effect"),
                            ("between", "Narrowed down"),
                            ("stopped", "Stopped"),
                        ],
                        default="running",
                        max_length=8,
                    ),
                ),
                ("message", models.TextField(blank=True)),
                ("started_at", models.DateTimeField(auto_now_add=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "good",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="benchmarks.commit",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="bisections",
                        to="runs.run",
                    ),
                ),
                (
                    "change_point",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="bisections",
                        to="results.changepoint",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("change_point", "good"), name="bisection_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["running", "found", "part", "between", "stopped"])
                        ),
                        name="bisection_state_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Histogram",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("ok", "Answered well"), ("other", "Answered otherwise")],
                        max_length=5,
                    ),
                ),
                ("encoded", models.BinaryField()),
                ("count", models.PositiveBigIntegerField()),
                (
                    "trial",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="histograms",
                        to="runs.trial",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("trial", "kind"), name="histogram_once"),
                    models.CheckConstraint(
                        condition=models.Q(("count__gte", 1)), name="histogram_not_empty"
                    ),
                ],
            },
        ),
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
                ("reason", models.TextField(blank=True)),
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
        migrations.AddConstraint(
            model_name="metric",
            constraint=models.UniqueConstraint(
                fields=("team", "key"), name="metric_once", nulls_distinct=False
            ),
        ),
        migrations.AddConstraint(
            model_name="pin",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("commit__isnull", False), ("run__isnull", True)),
                    models.Q(("commit__isnull", True), ("run__isnull", False)),
                    _connector="OR",
                ),
                name="pin_holds_one_thing",
            ),
        ),
        migrations.AddConstraint(
            model_name="pin",
            constraint=models.CheckConstraint(
                condition=models.Q(("reason", ""), _negated=True), name="pin_has_a_reason"
            ),
        ),
        migrations.AddConstraint(
            model_name="pointhistogram",
            constraint=models.UniqueConstraint(
                fields=("commit", "case", "host", "definition", "kind"), name="point_histogram_once"
            ),
        ),
        migrations.AddIndex(
            model_name="reading",
            index=models.Index(fields=["case", "commit"], name="reading_by_case"),
        ),
        migrations.AddIndex(
            model_name="reading",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["at"], name="reading_by_time"
            ),
        ),
        migrations.AddConstraint(
            model_name="reading",
            constraint=models.CheckConstraint(
                condition=models.Q(("validity__in", ["valid", "suspect", "invalid"])),
                name="reading_validity_known",
            ),
        ),
        migrations.AddIndex(
            model_name="removal",
            index=models.Index(fields=["project", "-began_at"], name="removal_by_project"),
        ),
        migrations.AddConstraint(
            model_name="removal",
            constraint=models.UniqueConstraint(
                fields=("run", "kind"), name="removal_of_a_run_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="removal",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("kind__in", ["files", "distributions", "trials", "readings", "points"])
                ),
                name="removal_kind_is_known",
            ),
        ),
        migrations.AddIndex(
            model_name="resultimport",
            index=models.Index(
                condition=models.Q(("state__in", ["queued", "running"])),
                fields=["last_step_at"],
                name="import_going_on",
            ),
        ),
        migrations.AddIndex(
            model_name="resultimport",
            index=models.Index(fields=["team", "-id"], name="import_by_team"),
        ),
        migrations.AddConstraint(
            model_name="resultimport",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["queued", "running", "ready", "done", "failed"])
                ),
                name="import_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="resultimport",
            constraint=models.CheckConstraint(
                condition=models.Q(("accepted__lte", models.F("done"))), name="import_counts_add_up"
            ),
        ),
        migrations.AddConstraint(
            model_name="resultimport",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "ready"), _negated=True),
                    models.Q(("history__isnull", False), ("preview__isnull", False)),
                    _connector="OR",
                ),
                name="import_ready_has_a_preview",
            ),
        ),
        migrations.AddConstraint(
            model_name="importpart",
            constraint=models.UniqueConstraint(fields=("result_import", "number"), name="import_part_once"),
        ),
        migrations.AddConstraint(
            model_name="retention",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("files_days__isnull", True), ("files_days__gte", 1), _connector="OR"
                ),
                name="retention_files_a_day",
            ),
        ),
        migrations.AddConstraint(
            model_name="retention",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("distributions_days__isnull", True),
                        models.Q(
                            ("files_days__isnull", False),
                            ("distributions_days__gte", models.F("files_days")),
                        ),
                        _connector="OR",
                    ),
                    models.Q(
                        ("trials_days__isnull", True),
                        models.Q(
                            ("distributions_days__isnull", False),
                            ("trials_days__gte", models.F("distributions_days")),
                        ),
                        _connector="OR",
                    ),
                    models.Q(
                        ("points_days__isnull", True),
                        models.Q(
                            ("trials_days__isnull", False),
                            ("points_days__gte", models.F("trials_days")),
                        ),
                        _connector="OR",
                    ),
                ),
                name="retention_raw_first",
            ),
        ),
        migrations.AddConstraint(
            model_name="retention",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("keep_every__isnull", True), ("points_days__isnull", True)),
                    models.Q(
                        ("keep_every__gte", 2),
                        ("keep_every__isnull", False),
                        ("points_days__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="retention_thins_by_a_number",
            ),
        ),
        migrations.AddConstraint(
            model_name="series",
            constraint=models.UniqueConstraint(
                fields=("case", "host", "metric"), name="series_once"
            ),
        ),
        migrations.AddIndex(
            model_name="point",
            index=models.Index(
                fields=["series", "position"],
                include=(
                    "commit",
                    "at",
                    "epoch",
                    "configuration",
                    "mean",
                    "run_count",
                    "mean_log",
                    "m2_log",
                    "trials",
                    "suspect",
                    "invalid",
                ),
                name="point_along_commits",
            ),
        ),
        migrations.AddIndex(
            model_name="point",
            index=models.Index(fields=["commit", "series"], name="point_by_commit"),
        ),
        migrations.AddIndex(
            model_name="changepoint",
            index=models.Index(
                condition=models.Q(("state__in", ["open", "confirming", "confirmed", "small"])),
                fields=["found_at"],
                name="change_point_to_look_after",
            ),
        ),
        migrations.AddConstraint(
            model_name="changepoint",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "superseded"), _negated=True),
                fields=("series", "commit"),
                name="change_point_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="changepoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "open",
                            "confirming",
                            "confirmed",
                            "small",
                            "refuted",
                            "dismissed",
                            "superseded",
                        ],
                    )
                ),
                name="change_point_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="changepoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["alert", "candidate"])),
                name="change_point_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="baseline",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("series__isnull", True), ("case__isnull", True), _connector="XOR"
                ),
                name="baseline_of_a_series_or_a_case",
            ),
        ),
        migrations.AddConstraint(
            model_name="annotation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("case__isnull", True), ("series__isnull", True)),
                    models.Q(("benchmark__isnull", True), ("series__isnull", True)),
                    models.Q(("benchmark__isnull", True), ("case__isnull", True)),
                    _connector="OR",
                ),
                name="annotation_of_one_thing",
            ),
        ),
        migrations.CreateModel(
            name="HostBuildNoise",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("epoch", models.PositiveIntegerField()),
                (
                    "builds",
                    models.PositiveSmallIntegerField(help_text="The number of measured builds."),
                ),
                ("sigma", models.FloatField()),
                ("low", models.FloatField()),
                ("high", models.FloatField()),
                (
                    "degrees",
                    models.FloatField(help_text="Degrees of freedom of the variance."),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="build_noises",
                        to="runs.run",
                    ),
                ),
                (
                    "series",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="build_noises",
                        to="results.series",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "series"), name="host_build_noise_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("sigma__gte", 0), ("degrees__gte", 1)),
                        name="host_build_noise_in_range",
                    ),
                ]
            },
        ),
        migrations.RunSQL(REFUSE_UPDATE, "DROP FUNCTION pitwall_refuse_update();"),
        *[_insert_only(table) for table in INSERT_ONLY],
        migrations.RunSQL(MOVE_POINTS, DROP_MOVE_POINTS),
        *[_store_as_is(table, column) for table, column in COMPRESSED],
    ]
