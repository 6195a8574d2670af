"""An administrator creates teams and removes them with all their data."""

import re
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from orchestrator.accounts.models import AuditEntry, Membership, Team, User
from orchestrator.runs.models import Run
from tests.support.factories import Personas
from tests.support.route_params import make_route_params

#: The apps that have rows of teams, and rows that other teams have, or no team.
OURS = {
    "accounts", "fleet", "benchmarks", "runs", "results", "comparisons", "calibration", "reports",
    "alerts", "forges",
}  # fmt: skip
NOT_OF_RED = {
    "accounts.User", "accounts.Team", "accounts.Membership", "accounts.AuditEntry",
    "results.Metric", "results.ChangedSeries",
}  # fmt: skip


def called(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_create_team_adds_an_owner(personas: Personas) -> None:
    assert "alice owns the team Green Things now" in called(
        "create_team", "green", "--name", "Green Things", "--owner", "alice"
    )
    green = Team.objects.get(slug="green")
    assert personas.alice.user.memberships.get(team=green).role == "owner"
    actions = AuditEntry.objects.filter(team=green).values_list("action", flat=True)
    assert sorted(actions) == ["member.joined", "team.created"]


def test_create_team_can_print_an_invitation_for_the_first_owner(
    personas: Personas, client: Client
) -> None:
    output = called("create_team", "green")
    address = output.split("\n")[1]
    assert "/invitations/pwi_" in address
    account = {"username": "erin", "password": "quite a long one 7", "again": "quite a long one 7"}
    path = "/invitations" + address.split("/invitations")[1]
    assert client.post(path, account).headers["Location"] == "/"
    assert Membership.objects.get(team__slug="green").role == "owner"
    assert Membership.objects.get(team__slug="green").user.username == "erin"
    assert client.get("/").status_code == 200
    logged_in = AuditEntry.objects.get(team__slug="green", action="login.succeeded")
    assert logged_in.actor_name == "erin"
    assert client.cookies["known_device"].value


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("create_team", "red"), "there is already a team red"),
        (("create_team", "no name"), "slug: "),
        (("create_team", "green", "--owner", "nobody"), "there is no user nobody"),
        (("remove_team", "green"), "there is no team green; existing teams: blue, red"),
        (("remove_team", "blue", "--confirm", "red"), "'red' is not blue: nothing was removed"),
    ],
)
def test_team_commands_report_what_they_cannot_do(
    personas: Personas, words: tuple[str, ...], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        called(*words)
    assert set(Team.objects.values_list("slug", flat=True)) == {"red", "blue"}


def test_remove_team_asks_before_it_removes(
    personas: Personas, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/null").open() as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        with pytest.raises(CommandError, match="repeat the name with --confirm blue"):
            called("remove_team", "blue")
    assert Team.objects.filter(slug="blue").exists()


def test_remove_team_removes_all_measurements_of_the_team(
    db: None, tmp_path: Path, settings: Any, data_dir: Path
) -> None:
    make_route_params(tmp_path)
    red = Team.objects.get(slug="red").pk
    with pytest.raises(CommandError, match="runs of Red have not ended: cancel"):
        called("remove_team", "red", "--confirm", "red")
    assert Membership.objects.filter(team__slug="red").exists()
    Run.objects.exclude(state="finished").delete()
    assert list((settings.DATA_DIR / "repositories").glob("*.git"))
    output = called("remove_team", "red", "--confirm", "red")
    assert "are deleted permanently" in output
    assert re.search(r"^  [1-9]\d* projects$", output, re.MULTILINE)
    assert output.endswith("The team Red is removed.\n")
    ours = [model for model in apps.get_models() if model._meta.app_label in OURS]
    left = {model._meta.label for model in ours if model._base_manager.exists()}
    assert left <= NOT_OF_RED
    assert not AuditEntry.objects.filter(team_id=red).exists()
    assert set(Team.objects.values_list("slug", flat=True)) == {"blue", "violet"}
    assert User.objects.filter(username="alice").exists()
    assert not list((settings.DATA_DIR / "repositories").iterdir())
