"""Owners and maintainers instead of admins, invitations, what a token may, and a log that stays."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import orchestrator.accounts.models
import orchestrator.core.ids

ROLES = [
    ("viewer", "Viewer"), ("member", "Member"), ("maintainer", "Maintainer"), ("owner", "Owner"),
]
SCOPES = [
    ("read", "Read: look at runs, results and hosts"),
    ("run", "Run: start, confirm and cancel runs"),
    ("results", "Results: send what was measured elsewhere"),
    ("manage", "Manage: change benchmarks, hosts, rules and the team"),
]

OWNERS = "UPDATE accounts_membership SET role = 'owner' WHERE role = 'admin';"
ADMINS = """
UPDATE accounts_membership SET role = 'admin' WHERE role = 'owner';
UPDATE accounts_membership SET role = 'member' WHERE role = 'maintainer';
"""
NAMES = """
UPDATE accounts_auditentry entry SET actor_name = actor.username
FROM accounts_user actor WHERE actor.id = entry.actor_id;
"""

# A user may go: their name stays in the entry. A team may go, when it is named on purpose in the
# same transaction (services.remove_team does so).
STAYS = """
CREATE FUNCTION accounts_audit_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF current_setting('pitwall.removed_team', true) = OLD.team_id::text THEN
            RETURN OLD;
        END IF;
    ELSIF NEW.actor_id IS NULL AND to_jsonb(NEW) - 'actor_id' = to_jsonb(OLD) - 'actor_id' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the audit log is only ever added to'
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE ON accounts_auditentry
FOR EACH ROW EXECUTE FUNCTION accounts_audit_stays();
"""
GOES = """
DROP TRIGGER audit_stays ON accounts_auditentry;
DROP FUNCTION accounts_audit_stays();
"""


class Migration(migrations.Migration):

    dependencies = [("accounts", "0002_shared_cache"), ("benchmarks", "0001_initial")]

    operations = [
        migrations.RemoveConstraint(model_name='membership', name='membership_role_known'),
        migrations.AlterField(
            model_name='membership',
            name='role',
            field=models.CharField(choices=ROLES, default='member', max_length=10),
        ),
        migrations.RunSQL(OWNERS, ADMINS),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.CheckConstraint(condition=models.Q(('role__in', ['viewer', 'member', 'maintainer', 'owner'])), name='membership_role_known'),
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.UUIDField(default=orchestrator.core.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('role', models.CharField(choices=ROLES, max_length=10)),
                ('email', models.EmailField(blank=True, max_length=254)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('withdrawn_at', models.DateTimeField(blank=True, null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('used_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='accounts.team')),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('role__in', ['viewer', 'member', 'maintainer', 'owner'])), name='invitation_role_known'),
                    models.CheckConstraint(condition=models.Q(('used_at', None), ('withdrawn_at', None), _connector='OR'), name='invitation_ends_once'),
                ],
            },
        ),
        migrations.AddField(
            model_name='apitoken',
            name='scopes',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=SCOPES, max_length=10), default=orchestrator.accounts.models.all_scopes, size=None),
        ),
        migrations.AddField(
            model_name='apitoken',
            name='project',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to='benchmarks.project'),
        ),
        migrations.AddField(
            model_name='apitoken',
            name='expires_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name='apitoken',
            constraint=models.CheckConstraint(condition=models.Q(('scopes__contained_by', ['read', 'run', 'results', 'manage']), ('scopes__len__gt', 0)), name='token_scopes_known'),
        ),
        migrations.AddField(
            model_name='auditentry',
            name='actor_name',
            field=models.CharField(blank=True, max_length=150),
        ),
        migrations.AddField(
            model_name='auditentry',
            name='token',
            field=models.CharField(blank=True, max_length=120),
        ),
        migrations.RunSQL(NAMES, migrations.RunSQL.noop),
        migrations.RunSQL(STAYS, GOES),
    ]
