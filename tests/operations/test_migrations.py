"""New migrations do not lock the tables that grow with what is measured."""

import re
from collections.abc import Iterator

import pytest
from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    RemoveIndexConcurrently,
)
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

#: Tables that may have millions of rows, by app.
BIG = {
    "runs": {"job", "trial", "interimanalysis", "build"},
    "results": {
        "reading", "histogram", "artifact", "loadresult", "series", "point", "changedseries",
        "pointhistogram",
    },
    "comparisons": {"runverdict"},
    "alerts": {"event", "delivery"},
    "fleet": {"hostsnapshot"},
    "accounts": {"auditentry"},
    "benchmarks": {"commit", "case"},
}  # fmt: skip
#: The number of the last initial migration, which makes the tables while they are empty.
INITIAL = {
    "runs": 1, "results": 1, "alerts": 1, "fleet": 1, "accounts": 2, "benchmarks": 1,
    "comparisons": 1,
}  # fmt: skip
_REWRITES = re.compile(
    r"\b(CLUSTER|VACUUM\s+FULL|LOCK\s+TABLE|ALTER\s+COLUMN\s+\S+\s+TYPE)\b"
    r"|\bCREATE\s+(UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY)",
    re.IGNORECASE,
)


def problems(app: str, migration: migrations.Migration) -> list[str]:
    """What of it would lock a big table for as long as its rows take."""
    made = {
        each.name.lower()
        for each in migration.operations
        if isinstance(each, migrations.CreateModel)
    }
    big = BIG.get(app, set()) - made
    return [
        f"{app}.{migration.name}: {problem}"
        for operation in _database_operations(migration.operations)
        if (problem := _problem(operation, big))
    ]


def _database_operations(operations: list[Operation]) -> Iterator[Operation]:
    for operation in operations:
        if isinstance(operation, migrations.SeparateDatabaseAndState):
            yield from _database_operations(operation.database_operations)
        else:
            yield operation


def _problem(operation: Operation, big: set[str]) -> str:
    if isinstance(operation, migrations.RunSQL):
        match = _REWRITES.search(str(operation.sql))
        return f"its SQL locks: {match[0]}" if match else ""
    if getattr(operation, "model_name", "").lower() not in big:
        return ""
    if isinstance(
        operation, AddIndexConcurrently | RemoveIndexConcurrently | AddConstraintNotValid
    ):
        return ""
    if isinstance(operation, migrations.AddIndex):
        return "AddIndex: take AddIndexConcurrently, with atomic = False"
    if isinstance(operation, migrations.AddConstraint):
        return "AddConstraint: take AddConstraintNotValid, then ValidateConstraint"
    if isinstance(operation, migrations.AlterField):
        return "AlterField: add a column, fill it in batches, read it, remove the old one"
    if isinstance(operation, migrations.AddField):
        return _find_new_field_problem(operation.field)
    return ""


def _find_new_field_problem(field: models.Field) -> str:
    if field.unique or (field.db_index and not field.null):
        return "AddField with an index: add the index concurrently, in a migration of its own"
    if field.has_default() and callable(field.default):
        return "AddField with a computed default: let it be null, and fill it in batches"
    return ""


def test_new_migrations_lock_no_big_table():
    violations = []
    for (app, name), migration in MigrationLoader(None).disk_migrations.items():
        if app in BIG and int(name[:4]) > INITIAL[app]:
            violations += problems(app, migration)
    assert violations == []


LOCKING = [
    migrations.AddIndex("trial", models.Index(fields=["state"], name="x")),
    migrations.AddConstraint("trial", models.UniqueConstraint(fields=["state"], name="x")),
    migrations.AlterField("trial", "position", models.BigIntegerField()),
    migrations.AddField("trial", "x", models.UUIDField(default=dict)),
    migrations.AddField("trial", "x", models.IntegerField(null=True, unique=True)),
    migrations.RunSQL("CREATE INDEX x ON runs_trial (state)"),
    migrations.RunSQL("ALTER TABLE runs_trial ALTER COLUMN position TYPE bigint"),
    migrations.SeparateDatabaseAndState([migrations.RunSQL("LOCK TABLE runs_trial")]),
]
HARMLESS = [
    AddIndexConcurrently("trial", models.Index(fields=["state"], name="x")),
    AddConstraintNotValid("trial", models.CheckConstraint(condition=models.Q(round=1), name="x")),
    migrations.AddField("trial", "x", models.IntegerField(default=0)),
    migrations.AddField("trial", "x", models.IntegerField(null=True)),
    migrations.AddIndex("schedule", models.Index(fields=["name"], name="x")),
    migrations.RunSQL("CREATE UNIQUE INDEX CONCURRENTLY x ON runs_trial (state)"),
]


@pytest.mark.parametrize(
    ("operation", "locks"),
    [*((each, True) for each in LOCKING), *((each, False) for each in HARMLESS)],
)
def test_locking_operations_are_detected(operation, locks):
    migration = migrations.Migration("9999_made_up", "runs")
    migration.operations = [operation]
    assert bool(problems("runs", migration)) is locks


def test_the_listed_big_tables_exist():
    loader = MigrationLoader(None)
    there = {(app, name) for app, name in loader.project_state().models}
    assert {(app, name) for app, names in BIG.items() for name in names} <= there
