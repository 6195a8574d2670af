"""A suite that could not be added leaves nothing behind: no user, no team, no host, no mirror."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from orchestrator.accounts.models import Team, User
from orchestrator.benchmarks.models import Project
from orchestrator.fleet.models import Host
from tests.support.factories import make_repository

SUITE = "http-clients"


def add(repository: Path, suite: str = SUITE) -> dict[str, Any]:
    out = StringIO()
    call_command("add_suite", suite, repository=str(repository), quiet=True, stdout=out)
    return dict(json.loads(out.getvalue()))


@pytest.mark.django_db(transaction=True)
def test_a_failed_add_suite_leaves_no_rows_and_can_be_repeated(
    tmp_path: Path, data_dir: Path
) -> None:
    with pytest.raises(CommandError, match=SUITE):
        add(tmp_path / "nowhere")
    for model in (Team, User, Host, Project):
        assert not model.objects.exists(), model
    mirrors = tmp_path / "data" / "repositories"
    assert not list(mirrors.glob("*.git")), "a mirror is left"

    make_repository(tmp_path / "repository", [{"a": "1"}])
    assert add(tmp_path / "repository")["password"]
    # What was there before stays, whatever fails then.
    with pytest.raises(CommandError, match="server-overhead"):
        add(tmp_path / "nowhere", suite="server-overhead")
    assert Team.objects.get().slug == "demo"
    assert User.objects.get().is_active
    assert Host.objects.get().state == "ready"
    assert list(Project.objects.values_list("slug", flat=True)) == [SUITE]
