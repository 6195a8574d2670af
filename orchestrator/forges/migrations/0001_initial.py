import django.contrib.postgres.fields
import django.db.models.deletion
import orchestrator.core.ids
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("benchmarks", "0001_initial"),
        ("runs", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Connection",
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
                        choices=[
                            ("github", "GitHub"),
                            ("gitlab", "GitLab"),
                            ("gitea", "Gitea or Forgejo"),
                        ],
                        max_length=6,
                    ),
                ),
                ("api_url", models.CharField(max_length=300)),
                ("repository", models.CharField(max_length=200)),
                ("sealed_token", models.BinaryField(null=True)),
                ("sealed_secret", models.BinaryField()),
                (
                    "allowed_users",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "hosts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                ("budget_minutes", models.PositiveIntegerField(default=60)),
                ("fetch_due_at", models.DateTimeField(blank=True, null=True)),
                ("problem", models.TextField(blank=True)),
                ("created_at", models.DateTimeField()),
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
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="forge",
                        to="benchmarks.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PullRequest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("comment_id", models.CharField(blank=True, max_length=40)),
                ("published", models.CharField(blank=True, max_length=64)),
                ("next_at", models.DateTimeField(blank=True, db_index=True, null=True)),
                ("claim", models.UUIDField(blank=True, null=True)),
                ("claimed_until", models.DateTimeField(blank=True, null=True)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("problem", models.TextField(blank=True)),
                (
                    "connection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pulls",
                        to="forges.connection",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="BenchmarkRequest",
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
                ("note_id", models.CharField(max_length=40)),
                ("requested_by", models.CharField(max_length=100)),
                ("benchmark", models.CharField(max_length=60)),
                ("head_sha", models.CharField(blank=True, max_length=40)),
                ("base_branch", models.CharField(blank=True, max_length=200)),
                ("from_fork", models.BooleanField(default=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("requested", "Requested"),
                            ("waiting", "Waiting for approval"),
                            ("approved", "Approved"),
                            ("started", "Started"),
                            ("ended", "Ended"),
                            ("declined", "Declined"),
                        ],
                        default="requested",
                        max_length=9,
                    ),
                ),
                ("message", models.TextField(blank=True)),
                ("status", models.CharField(blank=True, max_length=300)),
                ("at", models.DateTimeField()),
                ("fetch_requested_at", models.DateTimeField(blank=True, null=True)),
                (
                    "fetches",
                    models.PositiveSmallIntegerField(
                        db_default=0, default=0, help_text="How often a fetch was requested for it."
                    ),
                ),
                (
                    "approved_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="forge_request",
                        to="runs.run",
                    ),
                ),
                (
                    "pull",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="requests",
                        to="forges.pullrequest",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="ReceivedWebhook",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("delivery_id", models.CharField(max_length=100)),
                ("event", models.CharField(max_length=60)),
                ("outcome", models.TextField(blank=True)),
                ("at", models.DateTimeField()),
                (
                    "connection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="webhooks",
                        to="forges.connection",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "webhooks",
                "ordering": ["-pk"],
            },
        ),
        migrations.AddConstraint(
            model_name="pullrequest",
            constraint=models.UniqueConstraint(
                fields=("connection", "number"), name="pull_request_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="benchmarkrequest",
            constraint=models.UniqueConstraint(
                fields=("pull", "note_id", "benchmark"), name="benchmark_request_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="benchmarkrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["requested", "declined"]),
                    models.Q(("head_sha", ""), _negated=True),
                    _connector="OR",
                ),
                name="benchmark_request_is_pinned",
            ),
        ),
        migrations.AddConstraint(
            model_name="receivedwebhook",
            constraint=models.UniqueConstraint(
                fields=("connection", "delivery_id"), name="received_webhook_once"
            ),
        ),
    ]
