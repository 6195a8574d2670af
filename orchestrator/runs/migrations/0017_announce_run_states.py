from django.db import migrations

_CREATE = """
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
_DROP = """
DROP TRIGGER run_state_announced ON runs_run;
DROP FUNCTION announce_run_state();
"""


class Migration(migrations.Migration):
    """Web processes hear which runs changed, whoever changed them (docs/decisions/0044)."""

    dependencies = [("runs", "0016_fewer_indexes_of_trials")]

    operations = [migrations.RunSQL(_CREATE, _DROP)]
