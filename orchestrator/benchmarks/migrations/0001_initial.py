import django.contrib.postgres.fields
import django.db.models.deletion
import orchestrator.core.ids
from django.conf import settings
from django.db import migrations, models

# A version of a definition is never changed: the database refuses an UPDATE of its content.
VERSIONS_NEVER_CHANGE = """
CREATE FUNCTION benchmarks_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a version of a definition is never changed; save another one'
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER versions_never_change
BEFORE UPDATE OF benchmark_id, version, source, spec, axes, digest, path, commit_id
ON benchmarks_definition FOR EACH ROW EXECUTE FUNCTION benchmarks_refuse_update();
"""
DROP_VERSIONS_NEVER_CHANGE = """
DROP TRIGGER versions_never_change ON benchmarks_definition;
DROP FUNCTION benchmarks_refuse_update();
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Project",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.SlugField(max_length=60)),
                ("name", models.CharField(max_length=100)),
                ("repository_url", models.CharField(max_length=500)),
                ("default_branch", models.CharField(default="main", max_length=200)),
                ("fetched_at", models.DateTimeField(blank=True, null=True)),
                (
                    "branches",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="[name, hash of the tip], newest tip first.",
                    ),
                ),
                (
                    "confirm_changes",
                    models.BooleanField(
                        default=True,
                        help_text="Confirm suspected changes automatically.",
                    ),
                ),
                (
                    "bisect_changes",
                    models.BooleanField(
                        default=True,
                        help_text="Search for the commit that caused a confirmed regression.",
                    ),
                ),
                (
                    "machine_minutes_a_day",
                    models.PositiveIntegerField(
                        default=60,
                        help_text="Machine time for confirmation and bisection, all hosts.",
                    ),
                ),
                (
                    "public_since",
                    models.DateTimeField(
                        blank=True,
                        help_text="Since when the project's results are public.",
                        null=True,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "deleted_by",
                    models.ForeignKey(
                        blank=True,
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
                        related_name="projects",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Commit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("sha", models.CharField(max_length=40)),
                ("parents", models.JSONField(default=list)),
                ("subject", models.CharField(max_length=300)),
                ("author", models.CharField(max_length=200)),
                ("committed_at", models.DateTimeField()),
                ("position", models.PositiveIntegerField(blank=True, null=True)),
                ("mainline", models.BooleanField(default=False)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="commits",
                        to="benchmarks.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="BuildSource",
            fields=[
                (
                    "commit",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="source",
                        serialize=False,
                        to="benchmarks.commit",
                    ),
                ),
                ("submodules", models.JSONField(blank=True, default=list)),
                ("has_lfs_files", models.BooleanField(db_default=False, default=False)),
                ("problem", models.TextField(blank=True)),
                ("requested_at", models.DateTimeField(blank=True, null=True)),
                ("read_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Benchmark",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.SlugField(max_length=60)),
                ("title", models.CharField(max_length=200)),
                ("repository_path", models.CharField(blank=True, max_length=200)),
                ("is_draft", models.BooleanField(db_default=False, default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "deleted_by",
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
                        related_name="benchmarks",
                        to="benchmarks.project",
                    ),
                ),
            ],
            options={
                "ordering": ["slug"],
            },
        ),
        migrations.CreateModel(
            name="RepositoryAccess",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_key", models.TextField(blank=True)),
                ("sealed_private_key", models.BinaryField(null=True)),
                ("username", models.CharField(blank=True, max_length=100)),
                ("sealed_token", models.BinaryField(null=True)),
                ("host_key", models.TextField(blank=True)),
                ("host_key_at", models.DateTimeField(blank=True, null=True)),
                ("offered_host_key", models.TextField(blank=True)),
                ("offered_at", models.DateTimeField(blank=True, null=True)),
                ("changed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "changed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="access",
                        to="benchmarks.project",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "repository access",
            },
        ),
        migrations.CreateModel(
            name="ProjectSecret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("sealed_value", models.BinaryField(null=True)),
                ("version", models.PositiveIntegerField(default=0)),
                ("changed_at", models.DateTimeField()),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "changed_by",
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
                        related_name="secrets",
                        to="benchmarks.project",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(fields=("project", "name"), name="project_secret_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="ShareLink",
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
                ("page", models.CharField(max_length=30)),
                ("parameters", models.JSONField(default=dict)),
                ("query", models.CharField(blank=True, max_length=2000)),
                ("title", models.CharField(max_length=200)),
                ("prefix", models.CharField(max_length=12)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
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
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="share_links",
                        to="benchmarks.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Case",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=16)),
                ("parameters", models.JSONField()),
                ("label", models.CharField(max_length=200)),
                ("hidden_at", models.DateTimeField(blank=True, null=True)),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="cases",
                        to="benchmarks.benchmark",
                    ),
                ),
            ],
            options={
                "ordering": ["label"],
                "constraints": [
                    models.UniqueConstraint(fields=("benchmark", "key"), name="case_key_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Definition",
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
                ("version", models.PositiveIntegerField()),
                ("source", models.TextField(help_text="YAML, as it was written.")),
                (
                    "spec",
                    models.JSONField(help_text="The validated specification in canonical form."),
                ),
                (
                    "axes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40),
                        default=list,
                        help_text="Axes of the matrix in order, which the JSON of `spec` does not keep.",
                        size=None,
                    ),
                ),
                ("digest", models.CharField(max_length=64)),
                ("path", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="definitions",
                        to="benchmarks.benchmark",
                    ),
                ),
                (
                    "commit",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="definitions",
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
            ],
            options={
                "ordering": ["-version"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("benchmark", "version"), name="definition_version_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("commit__isnull", True), ("path", "")),
                            models.Q(
                                ("commit__isnull", False), models.Q(("path", ""), _negated=True)
                            ),
                            _connector="OR",
                        ),
                        name="definition_read_from_a_file_of_a_commit",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Fetch",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="fetch",
                        serialize=False,
                        to="benchmarks.project",
                    ),
                ),
                ("requested_at", models.DateTimeField(blank=True, null=True)),
                ("next_at", models.DateTimeField(blank=True, null=True)),
                ("refs", models.JSONField(blank=True, default=list)),
                ("claim", models.UUIDField(blank=True, null=True)),
                ("claimed_until", models.DateTimeField(blank=True, null=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("succeeded_at", models.DateTimeField(blank=True, null=True)),
                ("failed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "failures",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="Since the last success."
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("progress", models.CharField(blank=True, max_length=200)),
                ("mirror_bytes", models.BigIntegerField(blank=True, null=True)),
                (
                    "clone",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="The next fetch replaces the mirror by a clone.",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("next_at__isnull", False)),
                        fields=["next_at"],
                        name="fetch_due",
                    )
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.UniqueConstraint(
                condition=models.Q(("deleted_at", None)),
                fields=("team", "slug"),
                name="project_slug_once",
            ),
        ),
        migrations.AddIndex(
            model_name="commit",
            index=models.Index(
                models.F("project"),
                models.OrderBy(models.F("position"), descending=True, nulls_last=True),
                models.OrderBy(models.F("committed_at"), descending=True),
                name="commit_newest",
            ),
        ),
        migrations.AddConstraint(
            model_name="commit",
            constraint=models.UniqueConstraint(fields=("project", "sha"), name="commit_once"),
        ),
        migrations.AddConstraint(
            model_name="commit",
            constraint=models.CheckConstraint(
                condition=models.Q(("sha__regex", "^[0-9a-f]{40}$")), name="commit_sha_is_full"
            ),
        ),
        migrations.AddConstraint(
            model_name="benchmark",
            constraint=models.UniqueConstraint(
                condition=models.Q(("deleted_at", None)),
                fields=("project", "slug"),
                name="benchmark_once",
            ),
        ),
        migrations.RunSQL(VERSIONS_NEVER_CHANGE, DROP_VERSIONS_NEVER_CHANGE),
    ]
