"""What a version of a definition says is never changed: the database itself refuses it."""

from django.db import migrations

FUNCTION = """
CREATE FUNCTION benchmarks_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a version of a definition is never changed; save another one'
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
"""
TRIGGER = """
CREATE TRIGGER versions_never_change
BEFORE UPDATE OF benchmark_id, version, source, spec, axes, digest, path, commit_id
ON benchmarks_definition FOR EACH ROW EXECUTE FUNCTION benchmarks_refuse_update();
"""


class Migration(migrations.Migration):
    dependencies = [("benchmarks", "0002_definitions_kept_in_the_repository")]

    operations = [
        migrations.RunSQL(FUNCTION, 'DROP FUNCTION benchmarks_refuse_update();'),
        migrations.RunSQL(TRIGGER, 'DROP TRIGGER versions_never_change ON benchmarks_definition;'),
    ]
