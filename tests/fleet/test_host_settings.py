"""Tags, hours, tuning, disk and the address for other hosts."""

from typing import Any

import pytest

from agents.hostagent.platform.linux import tuning as agent
from orchestrator.accounts.models import AuditEntry, Role
from orchestrator.core.errors import InvalidRequestError, NotFoundError, PermissionRefusedError
from orchestrator.fleet.host_settings import set_host_settings
from orchestrator.fleet.models import CheckStep, Host
from orchestrator.fleet.tuning import KNOBS, check_tuning
from tests.support.factories import Personas, add_member


def test_only_given_host_settings_change(host: Host, personas: Personas) -> None:
    set_host_settings(
        member=personas.alice,
        host_id=host.pk,
        tags=[" Fast ", "rack-2", "fast", ""],
        open_hours="mon-fri 20:00-07:00",
        timezone="Europe/Vienna",
        data_address="10.9.0.2",
        disk_limit_bytes=5 * 2**30,
        tuning={"governor": "performance", "turbo": "off", "smt": "", "swappiness": 1},
    )
    changed = set_host_settings(member=personas.alice, host_id=host.pk, tags=["slow"])
    assert changed.tags == ["slow"]
    assert (changed.open_hours, changed.timezone) == ("mon-fri 20:00-07:00", "Europe/Vienna")
    assert (changed.data_address, changed.disk_limit_bytes) == ("10.9.0.2", 5 * 2**30)
    assert changed.tuning == {"governor": "performance", "turbo": "off", "swappiness": "1"}
    assert AuditEntry.objects.latest("at").subject == "here: tags"


def test_another_user_for_measured_code_must_be_checked(host: Host, personas: Personas) -> None:
    def tried() -> list[str]:
        return [check.step for check in host.checks.order_by("pk")]

    for step in (CheckStep.PYTHON, CheckStep.AGENT, CheckStep.QUIET):
        host.checks.create(step=step, outcome="passed", seconds=0.1)
    set_host_settings(member=personas.alice, host_id=host.pk, tags=["a"], run_as="")
    assert tried() == ["python", "agent", "quiet"]
    changed = set_host_settings(member=personas.alice, host_id=host.pk, run_as="bench")
    assert (changed.run_as, tried()) == ("bench", ["python"])
    assert AuditEntry.objects.latest("at").subject == "here: run_as"


def test_host_settings_can_be_reset(host: Host, personas: Personas) -> None:
    set_host_settings(
        member=personas.alice, host_id=host.pk, tags=["a"], open_hours="sat", tuning={"aslr": "off"}
    )
    plain = set_host_settings(
        member=personas.alice, host_id=host.pk, tags=[], open_hours="", tuning={}, data_address=""
    )
    assert (plain.tags, plain.open_hours, plain.tuning, plain.data_address) == ([], "", {}, "")


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"tags": ["two words"]}, "tags", "got 'two words'"),
        ({"tags": ["x" * 41]}, "tags", "at most 40 long"),
        ({"tags": [f"t{number}" for number in range(31)]}, "tags", "at most 30 tags"),
        ({"open_hours": "weekends"}, "open_hours", "in 'weekends': expected days"),
        ({"timezone": "Vienna"}, "timezone", "expected a time zone"),
        ({"data_address": "10.0.0.1:80"}, "data_address", "without port"),
        ({"data_address": "a b"}, "data_address", "without port"),
        ({"disk_limit_bytes": 1}, "disk_limit_bytes", "expected at least 100 MiB"),
        ({"tuning": {"magic": "on"}}, "tuning", "there is no setting 'magic'"),
        ({"tuning": {"turbo": "yes"}}, "tuning.turbo", "turbo: expected on or off, got 'yes'"),
        ({"tuning": {"swappiness": 201}}, "tuning.swappiness", "a number from 0 to 200"),
        ({"tuning": {"governor": "../x"}}, "tuning.governor", "a governor of the host"),
        ({"run_as": "root"}, "run_as", "must not run as root"),
        ({"run_as": "--help"}, "run_as", "a user name of lower-case letters"),
        ({"run_as": "a" * 33}, "run_as", "a user name of lower-case letters"),
    ],
)
def test_invalid_host_settings_are_reported(
    changes: dict[str, Any], field: str, words: str, host: Host, personas: Personas
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        set_host_settings(member=personas.alice, host_id=host.pk, **changes)
    assert caught.value.field == field
    assert words in str(caught.value)
    before = Host.objects.get()
    assert (before.tags, before.open_hours, before.tuning, before.run_as) == ([], "", {}, "")


@pytest.mark.parametrize("address", ["fd00::9:1", "10.9.0.1", "rack-2.lab.example"])
def test_any_address_of_another_host_is_accepted(
    address: str, host: Host, personas: Personas
) -> None:
    changed = set_host_settings(member=personas.alice, host_id=host.pk, data_address=address)
    assert changed.data_address == address


def test_only_admins_of_the_team_change_host_settings(host: Host, personas: Personas) -> None:
    carol = add_member(personas.alice, "carol", Role.MEMBER)
    for member in (carol, personas.bob):
        with pytest.raises(PermissionRefusedError):
            set_host_settings(member=member, host_id=host.pk, tags=["mine"])
    with pytest.raises(NotFoundError):
        set_host_settings(member=personas.mallory, host_id=host.pk, tags=["mine"])
    assert Host.objects.get().tags == []


def test_the_agent_has_the_same_tuning_settings() -> None:
    assert set(KNOBS) == set(agent.KNOBS)


def test_every_valid_swappiness_is_accepted() -> None:
    for number in range(201):
        assert check_tuning({"swappiness": number}) == {"swappiness": str(number)}
