"""A definition that is kept in the measured repository is read at the commit that is measured."""

from pathlib import Path

import pytest
from django.db import IntegrityError, transaction

from orchestrator.benchmarks.models import Definition, Project
from orchestrator.benchmarks.refs import resolve_ref
from orchestrator.benchmarks.services import (
    build_slug,
    find_definition_files,
    import_definition,
    load_definition_at,
    save_definition,
    store_in_pitwall,
)
from orchestrator.core.errors import ConflictError, InvalidRequestError, PermissionRefusedError
from orchestrator.runs.plans import RunRequest, plan_run
from orchestrator.runs.services import create_run
from tests.support.factories import (
    DEFINITION,
    Personas,
    commit_files,
    make_definition,
    make_local_host,
    make_project,
)
from tests.support.fetches import fetch_now

QUICKER = DEFINITION.replace("rounds: 5", "rounds: 9")
BROKEN = DEFINITION.replace("duration_s: 0.6", "duration_s: soon")


@pytest.fixture
def project(personas: Personas, tmp_path: Path) -> Project:
    (tmp_path / "origin").mkdir()
    versions = [
        {"file.txt": "no definition yet"},
        {".pitwall.yaml": DEFINITION},
        {".pitwall.yaml": QUICKER},
        {".pitwall.yaml": BROKEN},
    ]
    (tmp_path / "origin").rmdir()
    new_project, _ = make_project(personas.alice, tmp_path / "origin", versions[:3])
    return new_project


def _run(project: Project, *refs: str) -> RunRequest:
    baseline, *contenders = refs
    return RunRequest(
        benchmark="server", baseline=baseline, contenders=tuple(contenders), hosts=("here",)
    )


def _commit_more(tmp_path: Path, files: dict[str, str], number: int) -> str:
    for name in files:
        (tmp_path / "origin" / name).parent.mkdir(exist_ok=True)
    return commit_files(tmp_path / "origin", files, number)


def test_files_with_definitions_are_found(project: Project, tmp_path: Path) -> None:
    _commit_more(tmp_path, {".pitwall/big.yaml": DEFINITION, ".pitwall/notes.txt": "x"}, 9)
    (tmp_path / "origin" / ".pitwall" / "link.yaml").symlink_to("/etc/passwd")
    commit_files(tmp_path / "origin", {}, 10)
    fetch_now(project)
    commit, paths = find_definition_files(project=project)

    assert paths == [".pitwall.yaml", ".pitwall/big.yaml"]
    assert commit.subject == "version 10"
    assert [build_slug(project, path) for path in paths] == ["server", "big"]
    assert find_definition_files(project=project, ref="main~4")[1] == []


def test_an_imported_definition_records_its_file_and_commit(
    personas: Personas, project: Project
) -> None:
    definition = import_definition(member=personas.alice, project=project, path=".pitwall.yaml")
    again = import_definition(member=personas.alice, project=project, path=".pitwall.yaml")

    assert definition == again
    assert definition.benchmark.slug == "server"
    assert definition.commit is not None
    assert (definition.version, definition.commit.subject) == (1, "version 3")
    assert definition.path == ".pitwall.yaml"
    assert definition.created_by == personas.alice.user


def test_a_run_uses_the_definition_of_its_newest_contender(
    personas: Personas, project: Project
) -> None:
    make_local_host(personas.alice)
    import_definition(member=personas.alice, project=project, path=".pitwall.yaml", ref="main~1")
    plan = plan_run(member=personas.alice, request=_run(project, "main~1", "main"))

    assert (plan.rounds, plan.definition.version, plan.definition_is_new) == (9, 2, True)
    assert Definition.objects.count() == 1

    run = create_run(member=personas.alice, request=_run(project, "main~1", "main"))
    older = create_run(member=personas.alice, request=_run(project, "main~1"))
    assert (run.definition.version, run.rounds) == (2, 9)
    assert run.definition.commit is not None
    assert run.definition.commit.subject == "version 3"
    assert (older.definition.version, older.rounds) == (1, 5)
    assert Definition.objects.count() == 2


def test_an_error_names_file_commit_and_path(
    personas: Personas, project: Project, tmp_path: Path
) -> None:
    make_local_host(personas.alice)
    import_definition(member=personas.alice, project=project, path=".pitwall.yaml")
    sha = _commit_more(tmp_path, {".pitwall.yaml": BROKEN}, 4)
    fetch_now(project)
    with pytest.raises(InvalidRequestError) as caught:
        plan_run(member=personas.alice, request=_run(project, "main~1", "main"))

    assert str(caught.value).startswith(
        f".pitwall.yaml at {sha[:10]}: load.duration_s: expected a valid number"
    )
    with pytest.raises(InvalidRequestError, match=r"there is no file \.pitwall\.yaml at"):
        plan_run(member=personas.alice, request=_run(project, "main~3"))


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\xff\xfe", "byte 0 is not UTF-8"), (b"#" * 300_000, "at most 256 KiB")],
)
def test_a_binary_or_too_long_file_is_refused(
    personas: Personas, project: Project, tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "origin" / ".pitwall.yaml").write_bytes(content)
    commit_files(tmp_path / "origin", {}, 5)
    fetch_now(project)
    with pytest.raises(InvalidRequestError, match=words):
        import_definition(member=personas.alice, project=project, path=".pitwall.yaml")


def test_a_symbolic_link_is_not_a_definition(
    personas: Personas, project: Project, tmp_path: Path
) -> None:
    file = tmp_path / "origin" / ".pitwall.yaml"
    file.unlink(missing_ok=True)
    file.symlink_to("/etc/passwd")
    commit_files(tmp_path / "origin", {}, 5)
    fetch_now(project)
    with pytest.raises(InvalidRequestError, match=r"there is no file \.pitwall\.yaml"):
        import_definition(member=personas.alice, project=project, path=".pitwall.yaml")


@pytest.mark.parametrize("path", ["/etc/passwd", "../x.yaml", ".pitwall/a/b.yaml", "file.txt"])
def test_no_other_file_is_read(personas: Personas, project: Project, path: str) -> None:
    with pytest.raises(InvalidRequestError, match="expected") as caught:
        import_definition(member=personas.alice, project=project, path=path)
    assert caught.value.field == "path"


def test_a_repository_definition_cannot_be_edited_in_pitwall(
    personas: Personas, project: Project
) -> None:
    definition = import_definition(member=personas.alice, project=project, path=".pitwall.yaml")
    with pytest.raises(ConflictError, match=r"change \.pitwall\.yaml there"):
        make_definition(personas.alice, project, slug="server", source=DEFINITION)

    store_in_pitwall(member=personas.alice, benchmark=definition.benchmark)
    mine = save_definition(member=personas.alice, project=project, slug="server", source=DEFINITION)
    assert (mine.version, mine.commit, mine.path) == (2, None, "")


def test_a_benchmark_can_be_moved_to_the_repository(personas: Personas, project: Project) -> None:
    make_definition(personas.alice, project, slug="server", source=DEFINITION)
    definition = import_definition(member=personas.alice, project=project, path=".pitwall.yaml")

    assert (definition.version, definition.benchmark.definitions.count()) == (2, 2)
    commit = resolve_ref(project=project, ref="main~1")
    assert load_definition_at(definition.benchmark, commit).version == 1


def test_viewers_cannot_import(personas: Personas, project: Project) -> None:
    with pytest.raises(PermissionRefusedError, match="viewer"):
        import_definition(member=personas.bob, project=project, path=".pitwall.yaml")


def test_the_database_refuses_to_change_a_version(personas: Personas, project: Project) -> None:
    definition = make_definition(personas.alice, project)
    definition.source = BROKEN
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        definition.save()
    Definition.objects.update(created_by=None)
