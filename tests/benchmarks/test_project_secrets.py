"""Secrets of a project: who may set them, what is stored, and who gets them."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from orchestrator.accounts.models import AuditEntry, Role
from orchestrator.accounts.quotas import QuotaExceededError
from orchestrator.benchmarks import project_secrets
from orchestrator.benchmarks.models import Project, ProjectSecret
from orchestrator.benchmarks.project_secrets import (
    MOST_VALUE_BYTES,
    add_secret,
    delete_secret,
    load_secrets,
    open_secrets,
    set_secret,
)
from orchestrator.core.errors import (
    BrokenSealError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionRefusedError,
)
from tests.support.factories import Personas, add_member, make_project

VALUE = "sk_test_51Habc"


@pytest.fixture
def project(personas: Personas, tmp_path: Path) -> Project:
    return make_project(personas.alice, tmp_path / "repository")[0]


def set_value(personas: Personas, project: Project, value: str = VALUE, name: str = "KEY") -> Any:
    return set_secret(member=personas.alice, project=project, name=name, value=value)


def test_a_value_is_sealed_versioned_and_audited(personas: Personas, project: Project) -> None:
    assert set_value(personas, project).version == 1
    row = ProjectSecret.objects.get()
    assert VALUE.encode() not in bytes(row.sealed_value)
    assert set_value(personas, project, "another value").version == 2
    delete_secret(member=personas.alice, project=project, name="KEY")
    assert not load_secrets(project).exists()
    assert ProjectSecret.objects.get().sealed_value is None
    # A new secret of the same name is not taken for the old one.
    assert set_value(personas, project).version == 3
    actions = AuditEntry.objects.filter(action__startswith="secret.").order_by("pk")
    assert list(actions.values_list("action", flat=True)) == [
        "secret.added", "secret.replaced", "secret.deleted", "secret.added",
    ]  # fmt: skip
    assert not any(VALUE in str(vars(each)) for each in actions)


def test_only_maintainers_write_and_each_team_its_own(personas: Personas, project: Project) -> None:
    maintainer = add_member(personas.alice, "mia", Role.MAINTAINER)
    set_secret(member=maintainer, project=project, name="KEY", value=VALUE)
    for other in (add_member(personas.alice, "max", Role.MEMBER), personas.bob):
        with pytest.raises(PermissionRefusedError):
            set_secret(member=other, project=project, name="KEY", value="another value")
        with pytest.raises(PermissionRefusedError):
            delete_secret(member=other, project=project, name="KEY")
    assert open_secrets(project, ["KEY"]).values == {"KEY": VALUE}


def test_number_and_size_have_quotas(
    personas: Personas, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_secrets, "MOST_SECRETS", 2)
    for name in ("A", "B"):
        set_value(personas, project, name=name)
    with pytest.raises(QuotaExceededError, match="at most 2 secrets"):
        set_value(personas, project, name="C")
    set_value(personas, project, "another value", name="B")  # Replacing adds none.
    delete_secret(member=personas.alice, project=project, name="A")
    set_value(personas, project, "x" * MOST_VALUE_BYTES, name="C")
    with pytest.raises(
        InvalidRequestError, match="at most 8192 bytes, and this one has 16384"
    ) as refused:
        set_value(personas, project, "ü" * MOST_VALUE_BYTES, name="C")
    assert refused.value.field == "value"


@pytest.mark.parametrize("value", ["", "1234567", "   1234567   ", "123456789\0", "12345678\ud800"])
def test_a_value_that_cannot_be_used_or_redacted_is_refused(
    personas: Personas, project: Project, value: str
) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        set_value(personas, project, value)
    assert refused.value.field == "value"
    assert not value.strip() or value.strip() not in str(refused.value)


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "Ä", "A" * 65, "A\n"])
def test_a_name_that_no_definition_can_have_is_refused(
    personas: Personas, project: Project, name: str
) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        set_value(personas, project, name=name)
    assert refused.value.field == "name"


def test_adding_never_replaces(personas: Personas, project: Project) -> None:
    add_secret(member=personas.alice, project=project, name="KEY", value=VALUE)
    with pytest.raises(ConflictError, match="there is a secret KEY already"):
        add_secret(member=personas.alice, project=project, name="KEY", value="another value")
    assert open_secrets(project, ["KEY"]).values == {"KEY": VALUE}
    with pytest.raises(NotFoundError):
        delete_secret(member=personas.alice, project=project, name="OTHER")


def test_values_are_opened_by_name_and_their_use_is_noted(
    personas: Personas, project: Project
) -> None:
    set_value(personas, project, "line one\nline two\n")
    set_value(personas, project, name="UNUSED")
    opened = open_secrets(project, ["KEY"])
    assert (opened.values, opened.versions) == ({"KEY": "line one\nline two\n"}, {"KEY": 1})
    used = dict(load_secrets(project).values_list("name", "last_used_at"))
    assert used["KEY"] is not None
    assert used["UNUSED"] is None
    with pytest.raises(InvalidRequestError, match="GONE, which is no secret of the project"):
        open_secrets(project, ["KEY", "GONE"])


def test_keys_are_rotated_and_a_copied_value_does_not_open(
    personas: Personas, project: Project, settings: Any
) -> None:
    settings.SEALING_KEYS = [("old", "o" * 40)]
    set_value(personas, project)
    settings.SEALING_KEYS = [("new", "n" * 40), ("old", "o" * 40)]
    out = StringIO()
    call_command("rotate_secrets", stdout=out)
    settings.SEALING_KEYS = [("new", "n" * 40)]
    assert open_secrets(project, ["KEY"]).values == {"KEY": VALUE}
    set_value(personas, project, "another value", name="B")
    stolen = ProjectSecret.objects.get(name="KEY").sealed_value
    ProjectSecret.objects.filter(name="B").update(sealed_value=stolen)
    with pytest.raises(BrokenSealError):
        open_secrets(project, ["B"])
