"""What is measured is insert-only: the database itself refuses an UPDATE."""

from django.db import migrations

TABLES = ("results_measurement", "results_histogram", "results_artifact", "fleet_hostsnapshot")

FUNCTION = """
CREATE FUNCTION pitwall_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed once written', TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
"""


def _trigger(table: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"CREATE TRIGGER insert_only BEFORE UPDATE ON {table} "
        "FOR EACH ROW EXECUTE FUNCTION pitwall_refuse_update();",
        f"DROP TRIGGER insert_only ON {table};",
    )


class Migration(migrations.Migration):
    dependencies = [("results", "0001_initial"), ("fleet", "0001_initial")]

    operations = [
        migrations.RunSQL(FUNCTION, "DROP FUNCTION pitwall_refuse_update();"),
        *[_trigger(table) for table in TABLES],
    ]
