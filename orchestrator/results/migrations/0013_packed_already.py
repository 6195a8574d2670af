"""What is compressed when it comes is stored as it is: PostgreSQL would try, and gain nothing."""

from django.db import migrations

COLUMNS = (
    ("results_artifact", "compressed"),
    ("results_histogram", "encoded"),
    ("results_loadresult", "encoded"),
    ("results_pointhistogram", "encoded"),
)


def _storage(table: str, column: str) -> migrations.RunSQL:
    change = f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE"
    return migrations.RunSQL(f"{change} EXTERNAL;", f"{change} EXTENDED;")


class Migration(migrations.Migration):
    dependencies = [("results", "0012_steps_that_measured_nothing")]

    operations = [_storage(table, column) for table, column in COLUMNS]
