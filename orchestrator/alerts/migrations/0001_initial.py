import django.contrib.postgres.fields
import django.db.models.deletion
import orchestrator.core.ids
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0002_initial"),
        ("benchmarks", "0001_initial"),
        ("results", "0001_initial"),
        ("runs", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Channel",
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
                    "kind",
                    models.CharField(
                        choices=[
                            ("webhook", "Webhook, signed"),
                            ("email", "E-mail"),
                            ("slack", "Slack"),
                            ("teams", "Microsoft Teams"),
                            ("matrix", "Matrix"),
                        ],
                        max_length=8,
                    ),
                ),
                ("target", models.CharField(max_length=300)),
                ("sealed_url", models.BinaryField(null=True)),
                ("sealed_secret", models.BinaryField(null=True)),
                (
                    "addresses",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.EmailField(max_length=254),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "events",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=20), default=list, size=None
                    ),
                ),
                (
                    "digest",
                    models.CharField(
                        choices=[
                            ("immediate", "Immediately"),
                            ("hourly", "Once an hour"),
                            ("daily", "Once a day"),
                        ],
                        default="immediate",
                        max_length=9,
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
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
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="channels",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Event",
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
                            ("run.ended", "A run has ended"),
                            ("alert.raised", "An alert is raised"),
                            ("alert.changed", "An alert has changed"),
                            ("test", "Test"),
                        ],
                        max_length=20,
                    ),
                ),
                ("subject", models.UUIDField()),
                ("version", models.CharField(blank=True, max_length=40)),
                ("data", models.JSONField()),
                ("at", models.DateTimeField(db_index=True)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="accounts.team",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Delivery",
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
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("delivered", "Delivered"),
                            ("failed", "Failed"),
                        ],
                        default="waiting",
                        max_length=9,
                    ),
                ),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("next_at", models.DateTimeField()),
                ("headers", models.JSONField(blank=True, default=dict)),
                ("body", models.TextField(blank=True)),
                ("log", models.JSONField(blank=True, default=list)),
                ("created_at", models.DateTimeField()),
                (
                    "channel",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="alerts.channel",
                    ),
                ),
                ("events", models.ManyToManyField(related_name="deliveries", to="alerts.event")),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="Alert",
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
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("acknowledged", "Acknowledged"),
                            ("confirmed", "Confirmed"),
                            ("silenced", "Silenced"),
                            ("resolved", "Resolved"),
                            ("accepted", "Accepted"),
                            ("dismissed", "Dismissed"),
                        ],
                        default="open",
                        max_length=12,
                    ),
                ),
                ("confirmed", models.BooleanField()),
                ("note", models.TextField(blank=True)),
                ("silenced_until", models.DateTimeField(blank=True, null=True)),
                ("log", models.JSONField(blank=True, default=list)),
                ("raised_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
                (
                    "assignee",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="alerts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("regression", "Regression"),
                            ("small_changes", "Small changes together"),
                            ("broken", "Broken commit"),
                        ],
                        default="regression",
                        max_length=13,
                    ),
                ),
                ("branch", models.CharField(blank=True, max_length=200)),
                (
                    "broken_cases",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                ("summary", models.TextField(blank=True)),
                ("total_change", models.FloatField(blank=True, null=True)),
                ("total_low", models.FloatField(blank=True, null=True)),
                ("total_high", models.FloatField(blank=True, null=True)),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alerts",
                        to="benchmarks.benchmark",
                    ),
                ),
                (
                    "commit",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="benchmarks.commit",
                    ),
                ),
                ("runs", models.ManyToManyField(related_name="alerts", to="runs.run")),
                (
                    "change_point",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="results.changepoint",
                    ),
                ),
                (
                    "change_points",
                    models.ManyToManyField(related_name="alerts", to="results.changepoint"),
                ),
                (
                    "changed_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "fixed_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="benchmarks.commit",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alerts",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [
                    models.Index(fields=["team", "-id"], name="alert_by_team"),
                    models.Index(
                        condition=models.Q(("state", "open")),
                        fields=["team"],
                        name="alert_open_by_team",
                    ),
                    models.Index(
                        condition=models.Q(("state", "silenced")),
                        fields=["silenced_until"],
                        name="alert_silenced_until",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "open",
                                    "acknowledged",
                                    "confirmed",
                                    "silenced",
                                    "resolved",
                                    "accepted",
                                    "dismissed",
                                ],
                            )
                        ),
                        name="alert_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("silenced_until__isnull", False), ("state", "silenced")),
                            models.Q(
                                models.Q(("state", "silenced"), _negated=True),
                                ("silenced_until__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="alert_silenced_until_then",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("change_point", None),
                                ("commit__isnull", False),
                                ("kind", "broken"),
                            ),
                            models.Q(
                                ("change_point__isnull", False),
                                ("kind__in", ["regression", "small_changes"]),
                            ),
                            _connector="OR",
                        ),
                        name="alert_has_its_subject",
                    ),
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="channel",
            constraint=models.UniqueConstraint(fields=("team", "name"), name="channel_name_once"),
        ),
        migrations.AddConstraint(
            model_name="channel",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("kind", "email"),
                        ("sealed_url", None),
                        models.Q(("addresses", []), _negated=True),
                    ),
                    models.Q(
                        models.Q(("kind", "email"), _negated=True),
                        ("addresses", []),
                        ("sealed_url__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="channel_goes_somewhere",
            ),
        ),
        migrations.AddConstraint(
            model_name="channel",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("digest", "immediate"),
                        ("kind", "webhook"),
                        ("sealed_secret__isnull", False),
                    ),
                    models.Q(models.Q(("kind", "webhook"), _negated=True), ("sealed_secret", None)),
                    _connector="OR",
                ),
                name="channel_webhook_is_signed",
            ),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.UniqueConstraint(
                fields=("kind", "subject", "version"), name="event_once"
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("state", "waiting")),
                fields=["next_at"],
                name="delivery_waiting_by_time",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(fields=["channel", "-id"], name="delivery_by_channel"),
        ),
    ]
