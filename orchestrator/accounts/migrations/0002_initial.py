import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# The table of Django's cache in the database (manage.py createcachetable).
SHARED_CACHE = """
CREATE TABLE accounts_shared_cache (
    cache_key varchar(255) PRIMARY KEY,
    value text NOT NULL,
    expires timestamp with time zone NOT NULL
);
CREATE INDEX accounts_shared_cache_expires ON accounts_shared_cache (expires);
"""

# Entries of the audit log are never changed or deleted, with two exceptions. A user can be deleted:
# the name stays in the entry. A team can be deleted by services.remove_team, which names it in the
# same transaction.
AUDIT_STAYS = """
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
DROP_AUDIT_STAYS = """
DROP TRIGGER audit_stays ON accounts_auditentry;
DROP FUNCTION accounts_audit_stays();
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("benchmarks", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="project",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="api_tokens",
                to="benchmarks.project",
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="api_tokens",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="actor",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="invitation",
            name="created_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="invitation",
            name="used_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="membership",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="memberships",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="membership",
            name="team",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="memberships",
                to="accounts.team",
            ),
        ),
        migrations.AddField(
            model_name="invitation",
            name="team",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="invitations",
                to="accounts.team",
            ),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="team",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="audit_entries",
                to="accounts.team",
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="team",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="api_tokens",
                to="accounts.team",
            ),
        ),
        migrations.AddField(
            model_name="teamquota",
            name="team",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="quota",
                to="accounts.team",
            ),
        ),
        migrations.AddConstraint(
            model_name="membership",
            constraint=models.UniqueConstraint(fields=("team", "user"), name="membership_once"),
        ),
        migrations.AddConstraint(
            model_name="membership",
            constraint=models.CheckConstraint(
                condition=models.Q(("role__in", ["viewer", "member", "maintainer", "owner"])),
                name="membership_role_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="invitation",
            constraint=models.CheckConstraint(
                condition=models.Q(("role__in", ["viewer", "member", "maintainer", "owner"])),
                name="invitation_role_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="invitation",
            constraint=models.CheckConstraint(
                condition=models.Q(("used_at", None), ("withdrawn_at", None), _connector="OR"),
                name="invitation_ends_once",
            ),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["team", "-at"], name="audit_by_team"),
        ),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("scopes__contained_by", ["read", "run", "results", "manage"]),
                    ("scopes__len__gt", 0),
                ),
                name="token_scopes_known",
            ),
        ),
        migrations.RunSQL(SHARED_CACHE, "DROP TABLE accounts_shared_cache"),
        migrations.RunSQL(AUDIT_STAYS, DROP_AUDIT_STAYS),
    ]
