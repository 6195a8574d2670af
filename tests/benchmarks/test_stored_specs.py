"""Definitions are parsed once in a process, and never mixed up."""

from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestrator.benchmarks.models import Definition
from orchestrator.benchmarks.selectors import get_stored_spec, load_stored_spec, read_spec
from orchestrator.core.ids import hash_value
from tests.support.factories import Personas, make_definition, make_project


@pytest.fixture
def definition(personas: Personas, tmp_path: Path) -> Definition:
    project, _ = make_project(personas.alice, tmp_path / "origin")
    return make_definition(personas.alice, project)


def changed(definition: Definition, **changes: object) -> Definition:
    """The definition with another specification, not stored."""
    spec = {**definition.spec, **changes}
    return Definition(
        benchmark=definition.benchmark,
        version=definition.version + 1,
        source=definition.source,
        spec=spec,
        axes=definition.axes,
        digest=hash_value(spec),
    )


def test_a_definition_is_parsed_once(definition: Definition) -> None:
    first = get_stored_spec(definition)
    again = Definition.objects.only("digest").get(pk=definition.pk)
    with CaptureQueriesContext(connection) as queries:
        assert get_stored_spec(again) is first
        assert load_stored_spec(definition.pk, definition.digest) is first
        assert read_spec(again) is first.spec
    assert len(queries) == 0


def test_each_version_has_its_own_specification(definition: Definition) -> None:
    newer = changed(definition, rounds=7)
    newer.save()
    assert (get_stored_spec(definition).spec.rounds, get_stored_spec(newer).spec.rounds) == (5, 7)


def test_a_definition_that_is_not_stored_is_parsed_each_time(definition: Definition) -> None:
    draft = changed(definition, rounds=7)
    assert get_stored_spec(draft).spec.rounds == 7
    draft.spec["rounds"] = 8
    assert get_stored_spec(draft).spec.rounds == 8


def test_an_id_that_comes_back_with_another_content_is_parsed_again(
    definition: Definition,
) -> None:
    """A project may be deleted, and imported again from a file that somebody changed."""
    get_stored_spec(definition)
    imported = changed(definition, rounds=7)
    imported.pk = definition.pk
    definition.delete()
    imported.save(force_insert=True)
    assert get_stored_spec(imported).spec.rounds == 7
