"""While `migrate` runs and until all are replaced, processes of the old version use the new schema.

So a migration takes nothing away that they read, and asks nothing of what they insert.
"""

import re
from collections.abc import Iterator

import pytest
from django.apps import apps
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

#: The number of the last initial migration of each app. No process is older than these.
INITIAL = {
    "accounts": 2, "alerts": 1, "benchmarks": 1, "calibration": 1, "comparisons": 1, "fleet": 1,
    "forges": 1, "reports": 1, "results": 1, "runs": 1,
}  # fmt: skip
#: `app.migration` → the release whose processes are the last to use what it removes. The release
#: after that one has the migration.
UNUSED_SINCE: dict[str, str] = {}

_REMOVES = re.compile(
    r"\b(DROP\s+(TABLE|COLUMN|VIEW|SCHEMA)|RENAME\s+(TO|COLUMN|\S+\s+TO)|SET\s+NOT\s+NULL)\b",
    re.IGNORECASE,
)
_GONE = "do it in the release after the last one that uses it, and list the migration here"


def problems(app: str, migration: migrations.Migration, state: ProjectState) -> list[str]:
    """What of it makes processes of the version before answer with errors; changes `state`."""
    made = {
        each.name.lower()
        for each in migration.operations
        if isinstance(each, migrations.CreateModel)
    }
    violations = []
    for whole in migration.operations:
        for operation in _database_operations(whole):
            # A table that the same migration makes, no process of the old version knows.
            if getattr(operation, "model_name", "").lower() not in made:
                violations.append(_problem(app, operation, state))
        whole.state_forwards(app, state)
    return [f"{app}.{migration.name}: {problem}" for problem in violations if problem]


def _database_operations(operation: Operation) -> Iterator[Operation]:
    """Without those that change only Django's state, as before a column is removed."""
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        for each in operation.database_operations:
            yield from _database_operations(each)
    else:
        yield operation


def _problem(app: str, operation: Operation, state: ProjectState) -> str:
    removing = (
        migrations.RemoveField | migrations.DeleteModel
        | migrations.RenameField | migrations.RenameModel | migrations.AlterModelTable
    )  # fmt: skip
    if isinstance(operation, removing):
        return f"{operation.describe()}: {_GONE}"
    if isinstance(operation, migrations.RunSQL):
        match = _REMOVES.search(str(operation.sql))
        return f"its SQL has {match[0]}: {_GONE}" if match else ""
    if isinstance(operation, migrations.AddField):
        return _find_new_field_problem(operation)
    if isinstance(operation, migrations.AlterField):
        return _find_changed_field_problem(app, operation, state)
    return ""


def _find_new_field_problem(operation: migrations.AddField) -> str:
    field = operation.field
    if field.many_to_many or field.null or field.db_default is not models.NOT_PROVIDED:
        return ""
    return f"{operation.describe()}: old processes insert without it; give it null or a db_default"


def _find_changed_field_problem(
    app: str, operation: migrations.AlterField, state: ProjectState
) -> str:
    old = state.models[app, operation.model_name_lower].fields[operation.name]
    if old.null and not operation.field.null:
        return f"{operation.describe()}: old processes insert null; {_GONE}"
    if old.db_column != operation.field.db_column:
        return f"{operation.describe()}: this renames the column; {_GONE}"
    return ""


def test_no_migration_removes_what_the_previous_version_uses():
    loader, violations = MigrationLoader(None), []
    for (app, name), migration in loader.disk_migrations.items():
        is_new = app in INITIAL and int(name[:4]) > INITIAL[app]
        if is_new and f"{app}.{name}" not in UNUSED_SINCE:
            before = loader.project_state((app, name), at_end=False)
            violations += problems(app, migration, before)
    assert violations == []


def test_every_app_of_pitwall_is_checked():
    ours = {config.label for config in apps.get_app_configs() if config.name.startswith("orchestr")}
    assert ours & {app for app, _ in MigrationLoader(None).disk_migrations} <= set(INITIAL)


BREAKING = [
    migrations.RemoveField("trial", "state"),
    migrations.RenameField("trial", "state", "status"),
    migrations.DeleteModel("InterimAnalysis"),
    migrations.RenameModel("InterimAnalysis", "Look"),
    migrations.AlterModelTable("interimanalysis", "runs_look"),
    migrations.AlterField("trial", "host", models.IntegerField()),
    migrations.AlterField("trial", "state", models.CharField(db_column="status")),
    migrations.AddField("trial", "x", models.IntegerField(default=0)),
    migrations.RunSQL("ALTER TABLE runs_trial DROP COLUMN state"),
    migrations.RunSQL("ALTER TABLE runs_trial RENAME state TO status"),
    migrations.RunSQL(["SELECT 1", "ALTER TABLE runs_trial ALTER COLUMN host_id SET NOT NULL"]),
    migrations.SeparateDatabaseAndState([migrations.RunSQL("DROP TABLE runs_interimanalysis")]),
]
HARMLESS = [
    migrations.AddField("trial", "x", models.IntegerField(null=True)),
    migrations.AddField("trial", "x", models.IntegerField(db_default=0)),
    migrations.AlterField("trial", "state", models.CharField(max_length=90)),
    migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS x"),
    migrations.SeparateDatabaseAndState(
        state_operations=[migrations.RemoveField("trial", "state")]
    ),
]


@pytest.mark.parametrize(
    ("operation", "breaks"),
    [*((each, True) for each in BREAKING), *((each, False) for each in HARMLESS)],
)
def test_breaking_operations_are_detected(operation, breaks, state):
    migration = migrations.Migration("9999_made_up", "runs")
    migration.operations = [operation]
    assert bool(problems("runs", migration, state.clone())) is breaks


@pytest.fixture(scope="module")
def state() -> ProjectState:
    return MigrationLoader(None).project_state()
