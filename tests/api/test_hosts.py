"""Hosts over the API: what they are, when they may be used, and who may change that."""

from datetime import timedelta
from typing import Any

import pytest

from orchestrator.accounts.models import Role
from orchestrator.calibration.golden import advance_golden_checks
from orchestrator.core.clock import utc_now
from orchestrator.fleet.models import Host, HostState
from orchestrator.fleet.services import record_snapshot
from orchestrator.runs.leasing import lease_queued_jobs
from orchestrator.runs.models import GoldenCheck, HostLease, Job, Run
from orchestrator.transport.keys import generate_key
from tests.api.conftest import ApiClient, make_client
from tests.support.factories import add_member, finish_run, make_local_host
from tests.support.world import World


@pytest.fixture
def host(world: World) -> Host:
    return Host.objects.get(name="here")


@pytest.fixture
def golden(world: World) -> dict[str, Any]:
    return {"benchmark": "hello", "commit": world.shas[0], "every_hours": 24}


def test_hosts_are_listed_with_their_jobs(
    world: World, alice: ApiClient, mallory: ApiClient
) -> None:
    (shown,) = alice.get("hosts").json()["hosts"]
    assert (shown["name"], shown["state"], shown["run"]) == ("here", "ready", None)
    assert (shown["open_now"], shown["hours_change_at"], shown["golden"]) == (True, None, None)
    assert shown["profile"]["name"] == "Any machine"
    run = world.queue_run()
    HostLease.objects.create(host=Host.objects.get(), job=Job.objects.get(run=run))
    assert alice.get("hosts").json()["hosts"][0]["run"] == str(run.pk)
    assert mallory.get("hosts").json()["hosts"] == []


def test_a_host_is_shown_with_facts_and_changes(alice: ApiClient, host: Host) -> None:
    Host.objects.update(tags=["fast"])
    record_snapshot(host=host, facts={"fingerprint": "a", "kernel": "6.1", "cores": 4})
    record_snapshot(host=host, facts={"fingerprint": "b", "kernel": "6.2", "cores": 8})
    shown = alice.get(f"hosts/{host.pk}").json()
    assert (shown["tags"], shown["facts"]["kernel"]) == (["fast"], "6.2")
    assert [change["changed"] for change in shown["changes"]] == [
        [
            {"fact": "cores", "before": 4, "after": 8},
            {"fact": "kernel", "before": "6.1", "after": "6.2"},
        ]
    ]
    assert shown["contradictions"] == [{"field": "cores", "profile": 4, "host": 8}]


def test_a_closed_host_reports_when_it_opens(alice: ApiClient, host: Host) -> None:
    today = utc_now()
    later, after = ((today + timedelta(days=days)).strftime("%a").lower() for days in (2, 3))
    answer = alice.patch(f"hosts/{host.pk}", {"open_hours": f"{later}-{after}"})
    opens = (today + timedelta(days=2)).strftime("%Y-%m-%dT00:00:00Z")
    assert (answer.status_code, answer.json()["open_now"]) == (200, False)
    assert answer.json()["hours_change_at"] == opens


def test_a_patch_changes_only_the_sent_fields(alice: ApiClient, host: Host) -> None:
    first = {"tags": ["fast"], "tuning": {"turbo": "off", "swappiness": 1}, "timezone": "UTC"}
    assert alice.patch(f"hosts/{host.pk}", first).status_code == 200
    assert alice.patch(f"hosts/{host.pk}", {"run_as": "bench"}).json()["run_as"] == "bench"
    shown = alice.patch(f"hosts/{host.pk}", {"data_address": "10.9.0.1"}).json()
    assert shown["run_as"] == "bench"
    assert (shown["tags"], shown["tuning"]) == (["fast"], {"turbo": "off", "swappiness": "1"})
    assert (shown["data_address"], shown["is_shared"]) == ("10.9.0.1", False)
    assert alice.patch(f"hosts/{host.pk}", {"is_shared": True}).json()["is_shared"] is True
    assert alice.patch(f"hosts/{host.pk}", {"tags": [], "data_address": ""}).json()["tags"] == []


def test_the_start_command_of_a_host_is_set_with_the_host_that_runs_it(
    world: World, alice: ApiClient, host: Host
) -> None:
    helper = make_local_host(world.personas.alice, "hypervisor")
    start = {"start_command": ["virsh", "start", "a b"], "start_host": "hypervisor"}
    refused = alice.patch(f"hosts/{host.pk}", start)
    assert (refused.status_code, refused.json()["field"]) == (422, "start_host")
    assert "another host of the team over SSH" in refused.json()["detail"]
    Host.objects.filter(pk=helper.pk).update(transport="ssh", state="unreachable")
    shown = alice.patch(f"hosts/{host.pk}", start).json()
    assert {name: shown[name] for name in start} == start
    assert alice.patch(f"hosts/{host.pk}", {"start_host": ""}).json()["field"] == "start_host"
    empty = {"start_command": [], "start_host": ""}
    shown = alice.patch(f"hosts/{host.pk}", empty).json()
    assert (shown["start_command"], shown["start_host"]) == ([], None)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"open_hours": "weekends"}, "open_hours"),
        ({"timezone": "Nowhere"}, "timezone"),
        ({"mac_address": "00:11:22:33:44"}, "mac_address"),
        ({"tags": ["a b"]}, "tags"),
        ({"tuning": {"turbo": "fast"}}, "tuning.turbo"),
        ({"disk_limit_bytes": 0}, "disk_limit_bytes"),
        ({"run_as": "root"}, "run_as"),
        ({"colour": "red"}, "colour"),
        ({"tags": "fast"}, "tags"),
    ],
)
def test_an_invalid_host_setting_is_refused_with_the_field(
    alice: ApiClient, host: Host, body: dict[str, Any], field: str
) -> None:
    answer = alice.patch(f"hosts/{host.pk}", body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_a_host_is_drained_and_released(alice: ApiClient, host: Host) -> None:
    held = alice.post(f"hosts/{host.pk}/maintenance", {"reason": "new fan"}).json()
    assert (held["state"], held["message"]) == ("maintenance", "alice: new fan")
    released = alice.post(f"hosts/{host.pk}/release").json()
    assert (released["state"], released["message"]) == ("ready", "")
    again = alice.post(f"hosts/{host.pk}/release")
    assert again.status_code == 409
    assert "here is ready" in again.json()["detail"]
    assert alice.post(f"hosts/{host.pk}/maintenance").json()["message"] == "alice"


def test_a_host_is_retired(alice: ApiClient, host: Host) -> None:
    assert alice.post(f"hosts/{host.pk}/retire").json()["state"] == "retired"
    assert alice.post(f"hosts/{host.pk}/retire").status_code == 409


def test_a_golden_run_is_set_shown_and_removed(
    world: World, alice: ApiClient, host: Host, golden: dict[str, Any]
) -> None:
    answer = alice.put(f"hosts/{host.pk}/golden", golden)
    assert answer.status_code == 200
    assert (answer.json()["status"], answer.json()["every_hours"]) == ("planned", 24)
    advance_golden_checks(utc_now())
    run = Run.objects.get()
    assert alice.get("hosts").json()["hosts"][0]["golden"]["status"] == "running"
    finish_run(run, [1000])
    advance_golden_checks(utc_now())
    shown = alice.get(f"hosts/{host.pk}").json()["golden"]
    assert (shown["status"], shown["last_run"]) == ("learning", str(run.pk))
    assert alice.post(f"hosts/{host.pk}/golden/reset").status_code == 200
    assert alice.delete(f"hosts/{host.pk}/golden").status_code == 204
    assert not GoldenCheck.objects.exists()


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"every_hours": None}, 422, "every_hours"),
        ({"tolerance": 2}, 422, "tolerance"),
        ({"every_jobs": 0}, 422, "every_jobs"),
        ({"benchmark": "none"}, 404, None),
        ({"commit": "none"}, 422, None),
    ],
)
def test_an_invalid_golden_run_is_refused(
    alice: ApiClient,
    host: Host,
    golden: dict[str, Any],
    change: dict[str, Any],
    status: int,
    field: str | None,
) -> None:
    answer = alice.put(f"hosts/{host.pk}/golden", golden | change)
    assert answer.status_code == status
    if field:
        assert answer.json()["field"] == field
    assert not GoldenCheck.objects.exists()


WRITES = (
    ("patch", "", {"tags": ["mine"]}),
    ("post", "/maintenance", {}),
    ("post", "/reservation", {"duration_s": 60}),
    ("delete", "/reservation", {}),
    ("post", "/release", None),
    ("post", "/retire", None),
    ("put", "/golden", {"benchmark": "hello", "commit": "main", "every_hours": 1}),
    ("delete", "/golden", None),
    ("post", "/golden/reset", None),
)


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_viewers_change_nothing_and_strangers_find_nothing(
    method: str, path: str, body: Any, bob: ApiClient, mallory: ApiClient, host: Host
) -> None:
    Host.objects.update(state=HostState.QUARANTINED, message="drifted")
    address = f"hosts/{host.pk}{path}"
    refused = [getattr(client, method)(address, body).status_code for client in (bob, mallory)]
    assert refused == [403, 404]
    host.refresh_from_db()
    assert (host.state, host.message, host.tags) == ("quarantined", "drifted", [])
    assert not GoldenCheck.objects.exists()


def test_viewers_read_hosts_and_strangers_do_not(
    bob: ApiClient, mallory: ApiClient, host: Host
) -> None:
    assert bob.get(f"hosts/{host.pk}").status_code == 200
    assert mallory.get(f"hosts/{host.pk}").status_code == 404


def test_members_maintain_hosts_and_admins_change_their_settings(world: World, host: Host) -> None:
    carol = make_client(add_member(world.personas.alice, "carol", Role.MEMBER))
    assert carol.post(f"hosts/{host.pk}/maintenance").status_code == 200
    assert carol.post(f"hosts/{host.pk}/release").status_code == 200
    assert carol.patch(f"hosts/{host.pk}", {"tags": ["mine"]}).status_code == 403
    assert carol.post(f"hosts/{host.pk}/retire").status_code == 403


def test_a_reserved_host_gets_no_job_and_says_why(
    world: World, alice: ApiClient, host: Host
) -> None:
    run = world.queue_run()
    for wrong in ({"duration_s": 0}, {"duration_s": 604_801}, {}):
        assert alice.post(f"hosts/{host.pk}/reservation", wrong).status_code == 422
    body = {"duration_s": 7200, "reason": "perf"}
    shown = alice.post(f"hosts/{host.pk}/reservation", body).json()["reservation"]
    assert (shown["by"], shown["reason"], shown["on_host"]) == ("alice", "perf", False)
    (job,) = alice.get(f"runs/{run.pk}").json()["jobs"]
    assert job["waiting"].startswith("here is reserved by alice until ")
    assert job["waiting"].endswith(" UTC: perf")
    assert lease_queued_jobs() == []
    assert alice.delete(f"hosts/{host.pk}/reservation").json()["reservation"] is None
    (job,) = alice.get(f"runs/{run.pk}").json()["jobs"]
    assert "reserved" not in job["waiting"]
    assert len(lease_queued_jobs()) == 1


def test_variables_of_a_host_are_replaced_and_checked(alice: ApiClient, host: Host) -> None:
    env = {"https_proxy": "http://proxy:3128"}
    assert alice.patch(f"hosts/{host.pk}", {"env": env}).json()["env"] == env
    refused = alice.patch(f"hosts/{host.pk}", {"env": {"PATH": "bin", "1": "x"}})
    assert refused.status_code == 422
    assert {each["field"] for each in refused.json()["errors"]} == {"env.PATH", "env.1"}
    assert alice.patch(f"hosts/{host.pk}", {"env": {}}).json()["env"] == {}


def test_a_host_is_added_behind_a_jump_host(world: World, alice: ApiClient) -> None:
    credential = alice.post("credentials", {"name": "lab"}).json()["id"]
    key = " ".join(generate_key().public_openssh.split()[:2])
    body = {"name": "rack-1", "address": "[2001:db8::7]", "login": "ada", "credential": credential}
    refused = alice.post("hosts", {**body, "jump_hosts": ["bastion"]})
    assert (refused.status_code, refused.json()["field"]) == (422, "jump_hosts")
    added = alice.post("hosts", {**body, "jump_hosts": [f"ada@bastion {key} comment"]}).json()
    assert added["address"] == "2001:db8::7"
    assert added["jump_hosts"] == [f"ada@bastion:22 {key}"]
    way = {**body, "jump_hosts": []}
    del way["name"]
    assert alice.put(f"hosts/{added['id']}/ssh", way).status_code == 200
    assert alice.get(f"hosts/{added['id']}").json()["jump_hosts"] == []
