"""Axes keep the order in which they were written, though PostgreSQL orders the keys of objects."""

from orchestrator.benchmarks.matrix import expand
from orchestrator.benchmarks.models import Definition
from orchestrator.benchmarks.selectors import read_spec
from orchestrator.benchmarks.spec import parse
from tests.support.factories import DEFINITION, Personas, make_definition, make_project

AXES = "matrix:\n  size: [small, big]\n  connections: [4]\n  level: [1, 2]\n"
ORDERED = DEFINITION.replace("matrix:\n  connections: [4]\n", AXES)


def test_cases_keep_the_order_of_the_axes(personas: Personas, tmp_path) -> None:
    project, _ = make_project(personas.alice, tmp_path / "origin", [{"a": "1"}])
    make_definition(personas.alice, project, source=ORDERED)
    stored = read_spec(Definition.objects.get())
    assert list(stored.matrix) == ["size", "connections", "level"]
    assert [case.label for case in expand(stored)] == [
        case.label for case in expand(parse(ORDERED))
    ]
