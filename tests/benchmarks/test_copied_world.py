"""Most tests begin with copied rows. They have to be what the services write."""

from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import transaction
from django.db.models import Field, Model

from orchestrator.accounts.models import User
from tests.support import factories, world
from tests.support.copied_rows import KEPT_TIMES, RowTemplate
from tests.support.factories import DEFINITION, Personas, make_personas, make_run
from tests.support.world import World

pytestmark = pytest.mark.django_db


def read_rows() -> dict[str, list[dict[str, Any]]]:
    """Return table → its rows without keys and times; of related rows, the place in their table."""
    places, rows = {}, defaultdict(list)
    for model in apps.get_models():
        for place, row in enumerate(model._base_manager.order_by("pk")):
            places[model, row.pk] = place
            rows[model].append(row)
    return {
        model._meta.db_table: [
            {field.name: describe(row, field, places) for field in model._meta.concrete_fields}
            for row in of_model
        ]
        for model, of_model in rows.items()
    }


def describe(
    row: Model, field: "Field[Any, Any]", places: dict[tuple[type[Model], Any], int]
) -> object:
    value = getattr(row, field.attname)
    if value is None:
        return None
    if field.related_model is not None:
        return places[field.related_model, value]
    if field.primary_key or (isinstance(value, datetime) and field.name not in KEPT_TIMES):
        return type(value)
    return value


def make_rolled_back(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a world that is gone again, with the name of its folder left out."""
    with transaction.atomic():
        World.make(make_personas(), folder)
        rows = read_rows()
        transaction.set_rollback(True)
    for project in rows["benchmarks_project"]:
        assert project["repository_url"].startswith(str(folder))
        project["repository_url"] = project["repository_url"].removeprefix(str(folder))
    return rows


def test_copied_rows_are_those_that_the_services_write(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: dict[str, Any] = {}
    monkeypatch.setattr(world, "_SAVED", saved)
    monkeypatch.setattr(factories, "_PERSONAS", RowTemplate(*factories._PERSONAS.models))
    written = make_rolled_back(tmp_path / "written")
    assert set(saved) == {DEFINITION}
    copied = make_rolled_back(tmp_path / "copied")
    assert copied == written
    assert len(written["benchmarks_commit"]) == 3
    assert {"accounts_team", "accounts_auditentry", "fleet_host"} < set(written)


def test_copied_world_has_keys_times_and_files_of_its_own(data_dir: Path, tmp_path: Path) -> None:
    worlds = []
    for name in ("first", "second", "third"):
        with transaction.atomic():
            worlds.append(World.make(make_personas(), tmp_path / name))
            transaction.set_rollback(True)
    _, before, after = worlds
    assert before.repository != after.repository
    assert before.host.pk != after.host.pk
    assert before.project.pk != after.project.pk
    assert before.benchmark.created_at < after.benchmark.created_at
    assert before.shas == after.shas


def test_nothing_is_copied_from_tables_that_had_rows(personas: Personas) -> None:
    template = RowTemplate(User)
    with template.reading():
        User.objects.create_user(username="zoe")
    assert template.rows is None


def test_run_of_a_copied_world_is_queued(world: World) -> None:
    run = make_run(world.alice, world.shas[:2])
    assert run.jobs.get().host == world.host
    assert run.definition.benchmark.project == world.project
