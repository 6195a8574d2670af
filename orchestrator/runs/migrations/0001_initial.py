import django.contrib.postgres.fields
import django.db.models.deletion
import orchestrator.core.ids
import orchestrator.runs.states
from django.conf import settings
from django.db import migrations, models

# Web processes are notified of each run whose state changes, whoever changes it (docs/decisions/0044).
ANNOUNCE_RUN_STATE = """
CREATE FUNCTION announce_run_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('pitwall_run_state', NEW.id::text);
    RETURN NULL;
END
$$;
CREATE TRIGGER run_state_announced AFTER UPDATE OF state ON runs_run
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state)
    EXECUTE FUNCTION announce_run_state();
"""
DROP_ANNOUNCE_RUN_STATE = """
DROP TRIGGER run_state_announced ON runs_run;
DROP FUNCTION announce_run_state();
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("benchmarks", "0001_initial"),
        ("fleet", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Job",
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
                ("expected_s", models.FloatField(default=0.0)),
                ("not_before", models.DateTimeField(blank=True, null=True)),
                (
                    "tls",
                    models.BinaryField(
                        help_text="Sealed certificates of an active job that needs some.", null=True
                    ),
                ),
                (
                    "sealed_secret",
                    models.BinaryField(
                        help_text="By it the hosts of an active job know each other.", null=True
                    ),
                ),
                (
                    "secret_versions",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="Name → version of the project's secrets of its round.",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        default=orchestrator.runs.states.JobState["QUEUED"], max_length=16
                    ),
                ),
                ("phase", models.CharField(blank=True, max_length=60)),
                ("message", models.TextField(blank=True)),
                ("revision", models.PositiveBigIntegerField(default=0)),
                ("attempt", models.PositiveSmallIntegerField(default=1)),
                ("failures", models.PositiveSmallIntegerField(default=0)),
                ("pauses", models.PositiveSmallIntegerField(default=0)),
                ("interruptions", models.PositiveSmallIntegerField(default=0)),
                ("shared_hosts", models.BooleanField(db_default=False, default=False)),
                ("round", models.PositiveSmallIntegerField(default=0)),
                ("followers_started", models.BooleanField(default=False)),
                ("step_started", models.BooleanField(default=False)),
                ("journal_offset", models.PositiveBigIntegerField(default=0)),
                ("current_trial", models.UUIDField(blank=True, null=True)),
                ("claim", models.UUIDField(blank=True, null=True)),
                ("claimed_until", models.DateTimeField(blank=True, null=True)),
                ("poll_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "host",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to="fleet.host",
                    ),
                ),
                (
                    "snapshot",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to="fleet.hostsnapshot",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="HostLease",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("taken_at", models.DateTimeField(auto_now_add=True)),
                (
                    "host",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="lease",
                        to="fleet.host",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="leases",
                        to="runs.job",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Backfill",
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
                ("selection", models.TextField()),
                ("scope", models.CharField(max_length=64)),
                ("skipped", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="backfills",
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
                        related_name="backfills",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["team", "-created_at"], name="backfill_by_team")
                ],
            },
        ),
        migrations.CreateModel(
            name="Run",
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
                    "trigger",
                    models.CharField(
                        choices=[
                            ("web", "Web"),
                            ("api", "API"),
                            ("schedule", "Schedule"),
                            ("golden", "Golden run"),
                            ("calibration", "Calibration"),
                            ("confirm", "Confirmation"),
                            ("bisect", "Bisection"),
                            ("backfill", "Backfill"),
                        ],
                        max_length=12,
                    ),
                ),
                ("cases", models.TextField(blank=True)),
                ("pairwise", models.BooleanField(default=False)),
                ("rounds", models.PositiveIntegerField()),
                ("builds", models.PositiveSmallIntegerField(default=1)),
                (
                    "until",
                    models.CharField(
                        choices=[
                            ("rounds", "All rounds"),
                            ("decided", "Until decided"),
                            ("screened", "Until decided, or stopped early"),
                            ("compared", "Until all values are decided against the baseline"),
                            ("ranked", "Until the order of the first places is decided"),
                        ],
                        default="rounds",
                        max_length=8,
                    ),
                ),
                ("places", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("budget_s", models.FloatField(blank=True, null=True)),
                ("wait_for_quiet", models.BooleanField(default=True)),
                ("waits_until", models.DateTimeField()),
                ("repositories", models.JSONField(blank=True, default=list)),
                (
                    "priority",
                    models.SmallIntegerField(
                        choices=[(-2, "Background"), (-1, "Low"), (0, "Normal"), (1, "High")],
                        default=0,
                    ),
                ),
                ("seed", models.BigIntegerField()),
                (
                    "state",
                    models.CharField(
                        default=orchestrator.runs.states.RunState["QUEUED"], max_length=16
                    ),
                ),
                ("message", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("cancel_requested_at", models.DateTimeField(blank=True, null=True)),
                (
                    "backfill",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="runs",
                        to="runs.backfill",
                    ),
                ),
                (
                    "definition",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="benchmarks.definition",
                    ),
                ),
                (
                    "requested_by",
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
                        related_name="runs",
                        to="accounts.team",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="job",
            name="run",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="jobs", to="runs.run"
            ),
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=200)),
                ("request_digest", models.CharField(max_length=64)),
                ("answer", models.JSONField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="idempotency_keys",
                        to="accounts.team",
                    ),
                ),
                (
                    "token",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="accounts.apitoken",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="idempotency_keys",
                        to="runs.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="GoldenCheck",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("every_hours", models.PositiveIntegerField(blank=True, null=True)),
                ("every_jobs", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "tolerance",
                    models.FloatField(default=0.05, help_text="Share of drift that is allowed."),
                ),
                ("last_at", models.DateTimeField(blank=True, null=True)),
                (
                    "judged",
                    models.BooleanField(
                        default=True, help_text="The last run's outcome was looked at."
                    ),
                ),
                (
                    "repeats",
                    models.BooleanField(
                        default=False,
                        help_text="The last value was unusual: it is measured again at once.",
                    ),
                ),
                ("message", models.TextField(blank=True)),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
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
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "host",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="golden",
                        to="fleet.host",
                    ),
                ),
                (
                    "last_run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="runs.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Schedule",
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
                    "cron",
                    models.CharField(blank=True, help_text="Five fields, in UTC.", max_length=100),
                ),
                ("branch", models.CharField(blank=True, max_length=200)),
                ("tags", models.CharField(blank=True, max_length=200)),
                ("seen_tags", models.JSONField(blank=True, null=True)),
                ("seen_sha", models.CharField(blank=True, max_length=40)),
                ("baseline_ref", models.CharField(blank=True, max_length=200)),
                ("contender_ref", models.CharField(blank=True, max_length=200)),
                ("second_contender_ref", models.CharField(blank=True, max_length=200)),
                ("placements", models.JSONField(blank=True, default=list)),
                (
                    "cases",
                    models.TextField(blank=True, help_text="An expression that chooses cases."),
                ),
                ("pairwise", models.BooleanField(default=False)),
                ("rounds", models.PositiveIntegerField(blank=True, null=True)),
                ("builds", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("resolution", models.FloatField(blank=True, null=True)),
                (
                    "until",
                    models.CharField(
                        choices=[
                            ("rounds", "All rounds"),
                            ("decided", "Until decided"),
                            ("screened", "Until decided, or stopped early"),
                            ("compared", "Until all values are decided against the baseline"),
                            ("ranked", "Until the order of the first places is decided"),
                        ],
                        default="rounds",
                        max_length=8,
                    ),
                ),
                ("budget_s", models.FloatField(blank=True, null=True)),
                ("wait_limit_s", models.FloatField(blank=True, null=True)),
                (
                    "priority",
                    models.SmallIntegerField(
                        choices=[(-2, "Background"), (-1, "Low"), (0, "Normal"), (1, "High")],
                        default=0,
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("next_at", models.DateTimeField(db_index=True)),
                ("last_at", models.DateTimeField(blank=True, null=True)),
                ("last_message", models.TextField(blank=True)),
                (
                    "not_before",
                    models.DateTimeField(
                        blank=True,
                        help_text="Until then it waits for a fetch, or after a mistake.",
                        null=True,
                    ),
                ),
                ("failures", models.PositiveSmallIntegerField(db_default=0, default=0)),
                (
                    "fetch_requested_at",
                    models.DateTimeField(
                        blank=True, help_text="Since then it waits for a fetch.", null=True
                    ),
                ),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="schedules",
                        to="benchmarks.benchmark",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("hosts", models.ManyToManyField(related_name="schedules", to="fleet.host")),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="schedules",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.AddField(
            model_name="run",
            name="schedule",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="runs",
                to="runs.schedule",
            ),
        ),
        migrations.CreateModel(
            name="Variant",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveSmallIntegerField()),
                (
                    "commit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="variants",
                        to="benchmarks.commit",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="variants",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
            },
        ),
        migrations.CreateModel(
            name="Trial",
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
                ("round", models.PositiveSmallIntegerField()),
                (
                    "position",
                    models.PositiveIntegerField(help_text="Place in the job's order of execution."),
                ),
                ("expected_s", models.FloatField()),
                (
                    "state",
                    models.CharField(
                        default=orchestrator.runs.states.TrialState["PLANNED"], max_length=12
                    ),
                ),
                ("validity", models.CharField(blank=True, max_length=8)),
                ("reasons", models.JSONField(default=list)),
                ("message", models.TextField(blank=True)),
                ("attempt", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("provenance", models.JSONField(default=dict)),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="trials",
                        to="benchmarks.case",
                    ),
                ),
                (
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
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="trials",
                        to="runs.job",
                    ),
                ),
                (
                    "variant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="trials",
                        to="runs.variant",
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
            },
        ),
        migrations.CreateModel(
            name="InterimAnalysis",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("blocks", models.PositiveSmallIntegerField()),
                ("excluded", models.PositiveSmallIntegerField()),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("decided", models.BooleanField()),
                ("futile", models.BooleanField()),
                ("verdict", models.CharField(max_length=12)),
                ("needed_blocks", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("needed_least", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("needed_most", models.PositiveSmallIntegerField(blank=True, null=True)),
                (
                    "p_values",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(), size=None
                    ),
                ),
                ("message", models.TextField()),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="benchmarks.case",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="interim_analyses",
                        to="runs.job",
                    ),
                ),
            ],
            options={
                "ordering": ["job", "case", "blocks"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("job", "case", "blocks"), name="interim_analysis_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("decided", True), ("futile", True), _negated=True),
                        name="interim_analysis_decided_or_futile",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Build",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("recipe", models.CharField(blank=True, max_length=64)),
                ("label", models.CharField(blank=True, max_length=200)),
                ("installed", models.CharField(blank=True, max_length=64)),
                ("source_digest", models.CharField(blank=True, max_length=64)),
                ("digest", models.CharField(blank=True, max_length=64)),
                (
                    "state",
                    models.CharField(
                        default=orchestrator.runs.states.BuildState["BUILDING"], max_length=8
                    ),
                ),
                ("cached", models.BooleanField(default=False)),
                ("seconds", models.FloatField(blank=True, null=True)),
                ("message", models.TextField(blank=True)),
                ("log", models.TextField(blank=True)),
                ("log_offset", models.PositiveBigIntegerField(default=0)),
                ("started_at", models.DateTimeField()),
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="fleet.host",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="builds",
                        to="runs.job",
                    ),
                ),
            ],
            options={
                "ordering": ["started_at"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["building", "done", "failed"])),
                        name="build_state_known",
                    ),
                    models.UniqueConstraint(
                        fields=("job", "host", "commit", "recipe"), name="build_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Placement",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("target", "Target"),
                            ("generator", "Generator"),
                            ("backend", "Backend"),
                        ],
                        max_length=9,
                    ),
                ),
                ("wanted_tag", models.CharField(blank=True, max_length=40)),
                (
                    "avoid",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), blank=True, default=list, size=None
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="placements",
                        to="fleet.host",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="placements",
                        to="runs.job",
                    ),
                ),
                (
                    "wanted_host",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="fleet.host",
                    ),
                ),
                (
                    "wanted_profile",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="fleet.hardwareprofile",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("job", "role"), name="placement_role_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("wanted_host__isnull", False),
                                ("wanted_profile", None),
                                ("wanted_tag", ""),
                            ),
                            models.Q(
                                ("wanted_host", None),
                                ("wanted_profile__isnull", False),
                                ("wanted_tag", ""),
                            ),
                            models.Q(
                                ("wanted_host", None),
                                ("wanted_profile", None),
                                models.Q(("wanted_tag", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="placement_wants_one_thing",
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("state__in", ["measuring", "preparing"])),
                fields=["poll_at"],
                name="job_active_by_poll",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("state", "queued")),
                fields=["created_at"],
                name="job_queued_by_age",
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "queued",
                            "preparing",
                            "measuring",
                            "finished",
                            "no_data",
                            "failed",
                            "cancelled",
                        ],
                    )
                ),
                name="job_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state__in", ["measuring", "preparing"]), _negated=True),
                    ("host__isnull", False),
                    _connector="OR",
                ),
                name="job_active_has_host",
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("tls__isnull", True),
                    ("state__in", ["measuring", "preparing"]),
                    _connector="OR",
                ),
                name="job_tls_while_active",
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("sealed_secret__isnull", True),
                    ("state__in", ["measuring", "preparing"]),
                    _connector="OR",
                ),
                name="job_secret_while_active",
            ),
        ),
        migrations.AddConstraint(
            model_name="idempotencykey",
            constraint=models.UniqueConstraint(fields=("team", "key"), name="idempotency_key_once"),
        ),
        migrations.AddConstraint(
            model_name="goldencheck",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("every_hours__gte", 1), ("every_jobs__gte", 1), _connector="OR"
                ),
                name="golden_is_due_some_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="schedule",
            constraint=models.UniqueConstraint(fields=("team", "name"), name="schedule_name_once"),
        ),
        migrations.AddConstraint(
            model_name="schedule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(models.Q(("cron", ""), _negated=True), ("branch", ""), ("tags", "")),
                    models.Q(("cron", ""), ("tags", ""), models.Q(("branch", ""), _negated=True)),
                    models.Q(("branch", ""), ("cron", ""), models.Q(("tags", ""), _negated=True)),
                    _connector="OR",
                ),
                name="schedule_starts_one_way",
            ),
        ),
        migrations.AddConstraint(
            model_name="schedule",
            constraint=models.CheckConstraint(
                condition=models.Q(("resolution", None), ("resolution__gt", 0), _connector="OR"),
                name="schedule_resolution_is_a_change",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["team", "-created_at"], name="run_by_team"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        ["queued", "running", "finished", "no_data", "failed", "cancelled"],
                    )
                ),
                name="run_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(("rounds__gte", 1), ("rounds__lte", 100)),
                name="run_rounds_in_range",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(("builds__gte", 1), ("builds__lte", 10)),
                name="run_builds_in_range",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("until__in", ["rounds", "decided", "screened", "compared", "ranked"])
                ),
                name="run_until_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("places", None),
                    models.Q(("places__gte", 1), ("until", "ranked")),
                    _connector="OR",
                ),
                name="run_places_if_ranked",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(("budget_s", None), ("budget_s__gt", 0), _connector="OR"),
                name="run_budget_is_some_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="variant",
            constraint=models.UniqueConstraint(
                fields=("run", "commit"), name="variant_commit_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="variant",
            constraint=models.UniqueConstraint(
                fields=("run", "position"), name="variant_position_once"
            ),
        ),
        migrations.AddIndex(
            model_name="trial",
            index=models.Index(
                condition=models.Q(("host__isnull", False)),
                fields=["host"],
                name="trial_stored_by_host",
            ),
        ),
        migrations.AddIndex(
            model_name="trial",
            index=models.Index(
                condition=models.Q(
                    ("state", "failed"), ("validity__in", ["suspect", "invalid"]), _connector="OR"
                ),
                fields=["variant"],
                name="trial_doubtful_by_variant",
            ),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        ["planned", "measured", "failed", "skipped", "not needed", "unsupported"],
                    )
                ),
                name="trial_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.UniqueConstraint(
                fields=("variant", "case", "job", "round"), name="trial_once_a_block"
            ),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.UniqueConstraint(
                fields=("job", "position"), name="trial_position_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.CheckConstraint(
                condition=models.Q(("validity__in", ["", "valid", "suspect", "invalid"])),
                name="trial_validity_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "measured"), _negated=True),
                    models.Q(("validity", ""), _negated=True),
                    _connector="OR",
                ),
                name="trial_measured_has_validity",
            ),
        ),
        migrations.RunSQL(ANNOUNCE_RUN_STATE, DROP_ANNOUNCE_RUN_STATE),
    ]
