import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import orchestrator.core.ids
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Host",
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
                ("name", models.SlugField(max_length=60)),
                (
                    "transport",
                    models.CharField(
                        choices=[
                            ("ssh", "SSH"),
                            ("local", "This machine"),
                            ("external", "Nothing: its results are sent to us"),
                        ],
                        default="ssh",
                        max_length=8,
                    ),
                ),
                ("address", models.CharField(blank=True, max_length=253)),
                ("port", models.PositiveIntegerField(default=22)),
                ("login", models.CharField(blank=True, max_length=64)),
                (
                    "host_key",
                    models.TextField(blank=True, help_text="As `ssh-ed25519 AAAA…`; pinned."),
                ),
                ("work_dir", models.CharField(default=".pitwall", max_length=255)),
                ("python", models.CharField(default="python3", max_length=255)),
                (
                    "data_address",
                    models.CharField(
                        blank=True,
                        help_text="Where the other hosts of a job reach it; empty: the address above.",
                        max_length=253,
                    ),
                ),
                (
                    "tags",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "open_hours",
                    models.CharField(
                        blank=True,
                        help_text="When jobs may run, such as `mon-fri 20:00-07:00; sat-sun`; empty: always.",
                        max_length=500,
                    ),
                ),
                ("timezone", models.CharField(default="UTC", max_length=60)),
                ("tuning", models.JSONField(blank=True, default=dict)),
                (
                    "run_as",
                    models.CharField(
                        blank=True,
                        help_text="The user that measured code runs as; empty: the user that Pitwall logs in as.",
                        max_length=32,
                    ),
                ),
                ("disk_limit_bytes", models.PositiveBigIntegerField(default=10737418240)),
                (
                    "is_shared",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Other work runs on it, so trials that other processes disturb count as suspect.",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("unconfirmed", "Being set up"),
                            ("ready", "Ready"),
                            ("unreachable", "Unreachable"),
                            ("maintenance", "In maintenance"),
                            ("quarantined", "Quarantined"),
                            ("retired", "Retired"),
                            ("external", "Measured elsewhere"),
                        ],
                        default="unconfirmed",
                        max_length=12,
                    ),
                ),
                ("message", models.TextField(blank=True)),
                ("last_seen_at", models.DateTimeField(blank=True, null=True)),
                (
                    "unreachable_since",
                    models.DateTimeField(
                        blank=True,
                        help_text="When it stopped to answer; null while it answers.",
                        null=True,
                    ),
                ),
                (
                    "probe_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="The next probe of an unreachable host; null: at once.",
                        null=True,
                    ),
                ),
                ("failed_probes", models.PositiveSmallIntegerField(db_default=0, default=0)),
                (
                    "mac_address",
                    models.CharField(
                        blank=True,
                        help_text="Wakes the machine over the network, as `00:11:22:33:44:55`; empty: never.",
                        max_length=17,
                    ),
                ),
                (
                    "start_command",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Arguments of the command that starts it; empty: none.",
                    ),
                ),
                (
                    "start_host",
                    models.ForeignKey(
                        blank=True,
                        help_text="The host of the team that runs the command.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="fleet.host",
                    ),
                ),
                (
                    "start_problem",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Why the command failed the last time since the host is absent.",
                    ),
                ),
                (
                    "jump_hosts",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="As `user@host:port ssh-ed25519 AAAA…`, in order.",
                    ),
                ),
                (
                    "env",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="Variables of all measured processes on it.",
                    ),
                ),
                ("machine_id", models.CharField(blank=True, default="", max_length=64)),
                ("boot_id", models.CharField(blank=True, default="", max_length=64)),
                (
                    "installation_id",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The id of its work directory.",
                        max_length=64,
                    ),
                ),
                (
                    "reserved_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="No new job starts before; past or null: not reserved.",
                        null=True,
                    ),
                ),
                ("reserved_by", models.CharField(blank=True, default="", max_length=200)),
                ("reserved_for", models.CharField(blank=True, default="", max_length=500)),
                (
                    "reservation_seen_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When the host reported the reservation; null if it was made in Pitwall.",
                        null=True,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="hosts",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Credential",
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
                ("sealed_private_key", models.BinaryField()),
                ("public_key", models.TextField()),
                ("fingerprint", models.CharField(max_length=80)),
                (
                    "certificate",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="The key signed by an authority; empty: none.",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="credentials",
                        to="accounts.team",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="HardwareProfile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.SlugField(max_length=60)),
                ("name", models.CharField(max_length=100)),
                ("cpu_model", models.CharField(blank=True, max_length=120)),
                ("cores", models.PositiveIntegerField(blank=True, null=True)),
                ("threads", models.PositiveIntegerField(blank=True, null=True)),
                ("base_clock_mhz", models.PositiveIntegerField(blank=True, null=True)),
                ("boost_clock_mhz", models.PositiveIntegerField(blank=True, null=True)),
                ("memory_bytes", models.PositiveBigIntegerField(blank=True, null=True)),
                ("os", models.CharField(blank=True, max_length=100)),
                (
                    "price_per_hour",
                    models.DecimalField(blank=True, decimal_places=4, max_digits=9, null=True),
                ),
                ("notes", models.TextField(blank=True)),
                (
                    "is_pending",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Created together with a host, whose first facts name it.",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="profiles",
                        to="accounts.team",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="CheckRequest",
            fields=[
                (
                    "host",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="check_request",
                        serialize=False,
                        to="fleet.host",
                    ),
                ),
                ("requested_at", models.DateTimeField(auto_now_add=True)),
                ("idle_only", models.BooleanField(db_default=False, default=False)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("claim", models.UUIDField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name="host",
            name="credential",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="hosts",
                to="fleet.credential",
            ),
        ),
        migrations.AddField(
            model_name="host",
            name="profile",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="hosts",
                to="fleet.hardwareprofile",
            ),
        ),
        migrations.CreateModel(
            name="HostCheck",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "step",
                    models.CharField(
                        choices=[
                            ("reach", "Address and port"),
                            ("key", "Host key"),
                            ("login", "Login and work directory"),
                            ("python", "Python"),
                            ("agent", "Agent"),
                            ("limits", "Limits and rights"),
                            ("tools", "Load tools"),
                            ("clock", "Clock"),
                            ("quiet", "Idle check"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("passed", "passed"),
                            ("warning", "warning"),
                            ("action_required", "waiting for you"),
                            ("failed", "failed"),
                        ],
                        max_length=15,
                    ),
                ),
                ("message", models.TextField(help_text="What was found, and at which address.")),
                (
                    "remedies",
                    models.JSONField(default=list, help_text="[what to do, the command for it], …"),
                ),
                (
                    "shown_key",
                    models.TextField(
                        blank=True, help_text="The host key that waits for an answer."
                    ),
                ),
                ("seconds", models.FloatField()),
                ("at", models.DateTimeField(auto_now=True)),
                (
                    "host",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="checks",
                        to="fleet.host",
                    ),
                ),
                (
                    "other_host",
                    models.ForeignKey(
                        help_text="The host that is the same machine.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="fleet.host",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="HostSnapshot",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("facts", models.JSONField()),
                ("fingerprint", models.CharField(max_length=64)),
                ("taken_at", models.DateTimeField(auto_now_add=True)),
                (
                    "host",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="snapshots",
                        to="fleet.host",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="HostChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("changed", models.JSONField(help_text="Fact → [before, after].")),
                ("at", models.DateTimeField(help_text="When the snapshot was taken.")),
                (
                    "host",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="changes",
                        to="fleet.host",
                    ),
                ),
                (
                    "snapshot",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="change",
                        to="fleet.hostsnapshot",
                    ),
                ),
            ],
            options={
                "ordering": ["at"],
            },
        ),
        migrations.AddConstraint(
            model_name="credential",
            constraint=models.UniqueConstraint(
                fields=("team", "name"), name="credential_name_once"
            ),
        ),
        migrations.AddIndex(
            model_name="host",
            index=django.contrib.postgres.indexes.GinIndex(fields=["tags"], name="host_by_tag"),
        ),
        migrations.AddConstraint(
            model_name="host",
            constraint=models.UniqueConstraint(fields=("team", "name"), name="host_name_once"),
        ),
        migrations.AddConstraint(
            model_name="host",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "unconfirmed",
                            "ready",
                            "unreachable",
                            "maintenance",
                            "quarantined",
                            "retired",
                            "external",
                        ],
                    )
                ),
                name="host_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="host",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "ready"), ("transport", "ssh"), _negated=True),
                    models.Q(
                        models.Q(("host_key", ""), _negated=True), ("credential__isnull", False)
                    ),
                    _connector="OR",
                ),
                name="host_ready_needs_pinned_key",
            ),
        ),
        migrations.AddConstraint(
            model_name="host",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "external"), ("transport", "external")),
                    models.Q(
                        models.Q(("transport", "external"), _negated=True),
                        models.Q(("state", "external"), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="host_external_is_never_used",
            ),
        ),
        migrations.AddConstraint(
            model_name="host",
            constraint=models.CheckConstraint(
                condition=models.Q(("port__range", (1, 65535))), name="host_port_valid"
            ),
        ),
        migrations.AddConstraint(
            model_name="hardwareprofile",
            constraint=models.UniqueConstraint(fields=("team", "slug"), name="profile_slug_once"),
        ),
        migrations.AddConstraint(
            model_name="hostcheck",
            constraint=models.UniqueConstraint(fields=("host", "step"), name="host_check_once"),
        ),
        migrations.AddConstraint(
            model_name="hostcheck",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "step__in",
                        [
                            "reach",
                            "key",
                            "login",
                            "python",
                            "agent",
                            "limits",
                            "tools",
                            "clock",
                            "quiet",
                        ],
                    ),
                    ("outcome__in", ["passed", "warning", "action_required", "failed"]),
                ),
                name="host_check_known",
            ),
        ),
        migrations.AddIndex(
            model_name="hostsnapshot",
            index=models.Index(fields=["host", "-taken_at"], name="snapshot_by_host"),
        ),
        migrations.AddIndex(
            model_name="hostchange",
            index=models.Index(fields=["host", "at"], name="host_change_by_host"),
        ),
    ]
