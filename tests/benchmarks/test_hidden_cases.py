"""Former cases are hidden from choices and shown again; results stay."""

import pytest

from orchestrator.accounts.models import AuditEntry
from orchestrator.benchmarks.hidden_cases import load_former_cases, set_case_hidden
from orchestrator.benchmarks.models import Case
from orchestrator.benchmarks.services import save_definition
from orchestrator.comparisons.sides import load_choices
from orchestrator.core.errors import ConflictError, NotFoundError, PermissionRefusedError
from orchestrator.histories.histories import load_history_choices, read_choices_version
from orchestrator.results.models import Point
from tests.support.factories import DEFINITION
from tests.support.world import World

BOTH = DEFINITION.replace("connections: [4]", "connections: [4, 8]")


@pytest.fixture
def former(world: World) -> Case:
    """A measured case that the newest definition no longer contains."""
    _save(world, BOTH)
    world.run = world.measure_run(1000, 1001)
    _save(world, DEFINITION)
    return Case.objects.get(parameters={"connections": 8})


def _save(world: World, source: str) -> None:
    save_definition(member=world.alice, project=world.project, slug="hello", source=source)


def _hide(world: World, case: Case, *, hidden: bool = True) -> Case:
    return set_case_hidden(
        member=world.alice, benchmark=world.benchmark, key=case.key, hidden=hidden
    )


def _list_choices(world: World) -> tuple[list[str], list[str]]:
    history = load_history_choices(world.alice, world.benchmark).cases
    compare = load_choices(world.alice, world.benchmark).cases
    return [each.key for each in history], [key for key, _ in compare]


def test_only_a_former_case_is_hidden(world: World, former: Case) -> None:
    assert list(load_former_cases(world.benchmark)) == [former]
    present = Case.objects.exclude(pk=former.pk).get()
    with pytest.raises(ConflictError, match="is a case of the newest definition"):
        _hide(world, present)
    with pytest.raises(NotFoundError):
        set_case_hidden(member=world.alice, benchmark=world.benchmark, key="x" * 16, hidden=True)
    with pytest.raises(PermissionRefusedError):
        set_case_hidden(
            member=world.personas.bob, benchmark=world.benchmark, key=former.key, hidden=True
        )


def test_a_hidden_case_is_no_choice_and_its_results_stay(world: World, former: Case) -> None:
    points, version = Point.objects.count(), read_choices_version(world.benchmark)
    assert all(former.key in keys for keys in _list_choices(world))

    _hide(world, former)
    _hide(world, former)

    assert not any(former.key in keys for keys in _list_choices(world))
    assert read_choices_version(world.benchmark) != version
    assert Point.objects.count() == points
    assert AuditEntry.objects.filter(action="case.hidden").count() == 1
    _hide(world, former, hidden=False)
    assert all(former.key in keys for keys in _list_choices(world))


def test_a_run_that_measures_a_case_shows_it_again(world: World, former: Case) -> None:
    _hide(world, former)
    _save(world, BOTH)
    former.refresh_from_db()
    assert former.hidden_at is not None
    world.queue_run()
    former.refresh_from_db()
    assert former.hidden_at is None
    assert not load_former_cases(world.benchmark).exists()
