"""The hosts' list and a host's page: what they show, and which buttons they offer to whom."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orchestrator.accounts.models import Role
from orchestrator.calibration.golden import advance_golden_checks
from orchestrator.core.clock import utc_now
from orchestrator.fleet.fact_texts import format_fact_value
from orchestrator.fleet.models import Host
from orchestrator.fleet.reservations import is_reserved, record_reported
from orchestrator.fleet.services import record_snapshot, save_profile
from orchestrator.results.models import Calibration
from orchestrator.runs.models import GoldenCheck, HostLease, Run
from orchestrator.web.hosts.facts import describe_clock_offset, group_facts
from orchestrator.web.sparklines import build_sparkline
from tests.support.factories import (
    Personas,
    add_member,
    finish_run,
    make_local_host,
    make_run,
    noise,
)
from tests.support.html_pages import elements, field_error, get_text, values
from tests.support.world import World
from tests.web.conftest import signed_in

BUTTONS = ("Put in maintenance", "Activate", "Retire this host")
CARE = {"timezone": "UTC", "disk_limit_gib": "10"}


def _address(world: World, name: str = "host") -> str:
    return reverse(name, args=[world.host.pk])


def _page(client: Client, world: World) -> str:
    return client.get(_address(world)).content.decode()


def _buttons(page: str) -> set[str]:
    return {button for button in BUTTONS if button in page}


@pytest.mark.parametrize(
    ("state", "admin", "member"),
    [
        ("ready", {"Put in maintenance", "Retire this host"}, {"Put in maintenance"}),
        ("unreachable", {"Put in maintenance", "Retire this host"}, {"Put in maintenance"}),
        ("maintenance", {"Activate", "Retire this host"}, {"Activate"}),
        (
            "quarantined",
            {"Put in maintenance", "Activate", "Retire this host"},
            {"Put in maintenance", "Activate"},
        ),
        ("unconfirmed", {"Retire this host"}, set()),
        ("retired", {"Activate"}, set()),
    ],
)
def test_only_possible_actions_are_offered(
    state: str, admin: set[str], member: set[str], world: World, alice: Client, bob: Client
) -> None:
    Host.objects.update(state=state)
    carol = signed_in(add_member(world.alice, "carol", Role.MEMBER))

    assert _buttons(_page(alice, world)) == admin
    assert _buttons(_page(carol, world)) == member
    page = _page(bob, world)
    assert _buttons(page) == set()
    assert "Host settings" not in page
    assert "Set up a golden run" not in page


def test_a_host_is_drained_released_and_retired(world: World, alice: Client) -> None:
    alice.post(_address(world, "host-maintenance"), {"reason": "new fan"})
    assert "alice: new fan" in _page(alice, world)
    alice.post(_address(world, "host-release"))
    assert "new fan" not in _page(alice, world)
    alice.post(_address(world, "host-retire"))
    assert Host.objects.get().state == "retired"
    again = alice.post(_address(world, "host-retire"))
    assert again.status_code == 409
    assert "here is retired" in again.content.decode()


def test_a_host_is_reserved_and_the_reservation_ended(
    world: World, alice: Client, bob: Client
) -> None:
    wrong = alice.post(_address(world, "host-reserve"), {"duration_s": "5", "reason": "?"})
    assert wrong.status_code == 422
    assert not is_reserved(Host.objects.get())
    alice.post(_address(world, "host-reserve"), {"duration_s": "7200", "reason": "a leak"})
    for client, may_end in ((alice, True), (bob, False)):
        page = _page(client, world)
        assert "here is reserved by alice until" in page.lower()
        assert "UTC: a leak" in page
        assert ("End reservation" in page) is may_end
        assert "Reserve this host" not in page
        assert "is reserved by alice" in client.get(reverse("hosts")).content.decode()
    alice.post(_address(world, "host-reservation-end"))
    assert "reserved by" not in _page(alice, world)
    assert "Reserve this host" in _page(alice, world)


def test_a_reservation_on_the_host_ends_only_there(world: World, alice: Client) -> None:
    record_reported(world.host, {"left_s": 3600.0, "by": "ada", "reason": "<b>perf</b>"})
    page = _page(alice, world)
    assert "&lt;b&gt;perf&lt;/b&gt;" in page
    assert ".pitwall/reserve off" in page
    assert "End reservation" not in page
    refused = alice.post(_address(world, "host-reservation-end"))
    assert refused.status_code == 409
    assert is_reserved(Host.objects.get())


ACTIONS: tuple[tuple[str, dict[str, str]], ...] = (
    ("host-settings", {**CARE, "tags": "mine"}),
    ("host-golden", {"benchmark": "server/hello", "commit": "main", "every_hours": "1",
                     "tolerance_percent": "5"}),
    ("host-golden-remove", {}),
    ("host-golden-reset", {}),
    ("host-maintenance", {}),
    ("host-release", {}),
    ("host-reserve", {"duration_s": "3600"}),
    ("host-reservation-end", {}),
    ("host-retire", {}),
)  # fmt: skip


@pytest.mark.parametrize(("name", "data"), ACTIONS)
def test_viewers_change_nothing_and_strangers_find_nothing(
    name: str, data: dict[str, str], world: World, bob: Client, mallory: Client
) -> None:
    Host.objects.update(state="quarantined", message="drifted")
    assert bob.post(_address(world, name), data).status_code == 403
    assert mallory.post(_address(world, name), data).status_code == 404
    assert bob.get(_address(world, name)).status_code in (403, 405)
    host = Host.objects.get()
    assert (host.state, host.message, host.tags) == ("quarantined", "drifted", [])
    assert host.reserved_until is None
    assert not GoldenCheck.objects.exists()


def test_host_settings_are_changed(world: World, alice: Client) -> None:
    helper = make_local_host(world.personas.alice, "hypervisor")
    Host.objects.filter(pk=helper.pk).update(transport="ssh", state="unreachable")
    data = {
        **CARE,
        "tags": "rack-2, quiet",
        "open_hours": "mon-fri 20:00-07:00; sat-sun",
        "timezone": "Europe/Vienna",
        "data_address": "10.9.0.2",
        "disk_limit_gib": "2.5",
        "tuning_turbo": "off",
        "tuning_swappiness": "1",
        "run_as": "bench",
        "is_shared": "on",
        "mac_address": "02-AB-CD-00-00-01",
        "start_command": "virsh start 'a b'",
        "start_host": "hypervisor",
        "env": "http_proxy=http://proxy:3128\r\nA=b=c",
    }
    assert alice.post(_address(world, "host-settings"), data).headers["Location"] == _address(world)
    host = Host.objects.get(name="here")
    assert (host.tags, host.timezone) == (["quiet", "rack-2"], "Europe/Vienna")
    assert (host.disk_limit_bytes, host.data_address) == (int(2.5 * 2**30), "10.9.0.2")
    assert host.tuning == {"turbo": "off", "swappiness": "1"}
    assert (host.run_as, host.is_shared) == ("bench", True)
    assert host.mac_address == "02:ab:cd:00:00:01"
    assert (host.start_command, host.start_host) == (["virsh", "start", "a b"], helper)
    assert host.env == {"A": "b=c", "http_proxy": "http://proxy:3128"}
    page = _page(alice, world)
    for shown in (
        'value="quiet, rack-2"', "mon-fri 20:00-07:00; sat-sun", 'value="2.5"', 'value="bench"',
        "Other work runs on this host", "A=b=c", "on hypervisor</dd>",
    ):  # fmt: skip
        assert shown in page


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"open_hours": "weekends"}, "open_hours", "expected days such as"),
        ({"timezone": "Vienna"}, "timezone", "Expected a time zone"),
        ({"tags": "a b"}, "tags", "Expected a tag"),
        ({"disk_limit_gib": ""}, "disk_limit_gib", "required"),
        ({"tuning_swappiness": "many"}, "tuning_swappiness", "a number from 0 to 200"),
        ({"tuning_turbo": "fast"}, "tuning_turbo", "valid choice"),
        ({"run_as": "root"}, "run_as", "must not run as root"),
    ],
)
def test_an_error_is_shown_at_its_field_and_input_is_kept(
    changes: dict[str, str], field: str, words: str, world: World, alice: Client
) -> None:
    answer = alice.post(
        _address(world, "host-settings"), {**CARE, "data_address": "10.9.0.9", **changes}
    )

    assert answer.status_code == 422
    assert words in field_error(answer, field)
    assert "10.9.0.9" in values(answer, "input[value]")
    assert elements(answer, "details[open]")
    assert Host.objects.get().data_address == ""


def test_a_golden_run_is_set_shown_and_removed(world: World, alice: Client) -> None:
    data = {
        "benchmark": "server/hello",
        "commit": world.shas[0][:10],
        "every_jobs": "5",
        "tolerance_percent": "7.5",
    }
    assert alice.post(_address(world, "host-golden"), data).status_code == 302
    check = GoldenCheck.objects.get()
    assert (check.every_hours, check.every_jobs, check.tolerance) == (None, 5, 0.075)
    advance_golden_checks(utc_now())
    run = Run.objects.get(trigger="golden")
    assert elements(_page(alice, world), "[data-state=running]")
    finish_run(run, [1000])
    advance_golden_checks(utc_now())
    for page in (_page(alice, world), alice.get(reverse("hosts")).content.decode()):
        assert elements(page, "[data-state=learning]")
    assert "1 of the 3 golden runs" in _page(alice, world)
    assert reverse("run", args=[run.pk]) in _page(alice, world)
    alice.post(_address(world, "host-golden-reset"))
    alice.post(_address(world, "host-golden-remove"))
    assert not GoldenCheck.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"every_hours": ""}, "every_hours"),
        ({"commit": "no-such-branch"}, "commit"),
        ({"tolerance_percent": "0"}, "tolerance_percent"),
        ({"every_hours": "999999"}, "every_hours"),
    ],
)
def test_missing_fields_of_a_golden_run_are_reported(
    changes: dict[str, str], field: str, world: World, alice: Client
) -> None:
    data = {"benchmark": "server/hello", "commit": world.shas[0], "every_hours": "24"}
    answer = alice.post(
        _address(world, "host-golden"), {**data, "tolerance_percent": "5", **changes}
    )
    assert answer.status_code == 422
    assert field_error(answer, field).count(" ") > 1
    assert not GoldenCheck.objects.exists()


def test_the_list_shows_jobs_purpose_and_hours(world: World, alice: Client) -> None:
    later = (utc_now() + timedelta(days=2)).strftime("%a").lower()
    Host.objects.update(tags=["quiet"], open_hours=later)
    HostLease.objects.create(host=world.host, job=world.run.jobs.get())
    page = alice.get(reverse("hosts")).content.decode()

    assert reverse("run", args=[world.run.pk]) in page
    assert "quiet" in map(get_text, elements(page, "span.tag"))
    assert elements(page, "[data-state=closed]")
    assert "opens <time" in page


def test_the_list_summarises_the_fleet(
    world: World, alice: Client, bob: Client, mallory: Client, django_assert_max_num_queries: Any
) -> None:
    make_run(world.alice, world.shas[:2])
    for number in range(20):
        make_local_host(world.alice, f"rack-{number:02}")
    sick = Host.objects.get(name="rack-17")
    Host.objects.filter(pk=sick.pk).update(state="quarantined", message="golden run: p50 +9 %")
    temperatures = {"coretemp Package id 0": 61.4, "nvme Composite": 75.0}
    record_snapshot(host=world.host, facts={"temperatures": temperatures})
    for place, sigma in enumerate((0.02, 0.01, 0.0123)):
        run = make_run(world.alice, world.shas[:1])
        readings = {"case": {"requests.rate": noise(sigma)}}
        Calibration.objects.create(
            run=run, host=world.host, benchmark=run.definition.benchmark, epoch=0,
            commit=run.variants.get().commit, readings=readings,
            at=utc_now() - timedelta(days=9 - place),
        )  # fmt: skip
    with django_assert_max_num_queries(14):
        page = alice.get(reverse("hosts"))

    rows = elements(page, "tr:has(> th[scope=row])")
    assert len(rows) == 21
    # Who needs somebody comes first, with its reason and the way out of it.
    assert "rack-17" in get_text(rows[0])
    assert "golden run: p50 +9 %" in get_text(rows[0])
    assert reverse("host-release", args=[sick.pk]) in str(rows[0])
    here = next(row for row in rows if _address(world) in values(row, "a", "href"))
    # The processor's sensor, not the hotter disk's.
    assert "61 °C" in get_text(here)
    assert "1.23 %" in get_text(here)
    assert "The last 3 calibrations, from 2 % to 1.23 %" in str(here).replace("2.00 %", "2 %")
    assert elements(here, "polyline")
    assert "4 jobs in the queue" in str(here)
    assert "not calibrated" in get_text(rows[2])
    # An open page polls, and gets only the changed rows.
    tag = alice.get(reverse("hosts")).headers["ETag"]
    headers = {"HX-Request": "true", "If-None-Match": tag}
    assert alice.get(reverse("hosts"), headers=headers).status_code == 304
    Host.objects.filter(name="rack-03").update(state="unreachable", message="hung up")
    part = alice.get(reverse("hosts"), headers=headers).content.decode()
    assert "hung up" in part
    assert "<html" not in part
    assert "Activate" not in bob.get(reverse("hosts")).content.decode()
    assert "rack-17" not in mallory.get(reverse("hosts")).content.decode()


@pytest.mark.parametrize(
    ("values", "points"),
    [
        ([0.5], None),
        ([1.0, 1.0], "3.0,3.0 81.0,3.0"),
        ([0.0, 0.0], "3.0,21.0 81.0,21.0"),
        ([0.0, 1.0, 2.0], "3.0,21.0 42.0,12.0 81.0,3.0"),
    ],
)
def test_a_sparkline_begins_at_zero(values: list[float], points: str | None) -> None:
    drawn = build_sparkline(values)
    assert (drawn and drawn.points) == points


def test_settings_that_could_not_be_restored_are_shown(world: World, alice: Client) -> None:
    record_snapshot(host=world.host, facts={"tuning_left": {}})
    assert "could not restore" not in _page(alice, world)
    left = {"turbo": "/sys/devices/system/cpu/intel_pstate/no_turbo was '0'"}
    record_snapshot(host=world.host, facts={"tuning_left": left})
    notice = "could not restore settings of this host after tuning: turbo: /sys/devices"
    assert notice in get_text(_page(alice, world))


def test_facts_are_grouped_and_unknown_ones_have_a_reason(world: World, alice: Client) -> None:
    facts = {
        "cpu_model": "Test CPU 9000",
        "memory_bytes": 16 * 2**30,
        "governor": None,
        "tools": {"oha": {"version": "1.16.0", "path": "/usr/bin/oha"}, "ghz": None},
        "brand_new_fact": "<b>bold</b>",
        "reasons": {"governor": "no cpufreq here"},
        "static": ["cpu_model"],
    }
    record_snapshot(host=world.host, facts=facts)
    page = _page(alice, world)

    assert "16.0 GiB" in page
    assert "unknown: no cpufreq here" in page
    assert "1.16.0 at /usr/bin/oha" in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    titles = [group.title for group in group_facts(facts)]
    assert titles == ["Processor", "Memory and disk", "Programs", "Other"]
    assert "not found ghz" in get_text(page)


def test_changes_and_differences_from_the_profile_are_shown(world: World, alice: Client) -> None:
    save_profile(member=world.alice, slug="any", name="Any machine", cores=4)
    record_snapshot(host=world.host, facts={"fingerprint": "a", "kernel": "6.1", "cores": 4})
    assert "Change history" not in _page(alice, world)
    record_snapshot(host=world.host, facts={"fingerprint": "b", "kernel": "6.2", "cores": 8})
    page = _page(alice, world)

    assert "Change history" in page
    assert "kernel 6.1 6.2" in get_text(page)
    assert "cores: 4 in the profile, 8 on the host" in page


@pytest.mark.parametrize(
    ("off_s", "words"), [(3600, "1 h 00 min ahead"), (-90, "1 min 30 s behind"), (5, "")]
)
def test_clock_skew_is_shown(off_s: float, words: str, world: World, alice: Client) -> None:
    now = utc_now()
    assert describe_clock_offset({"time": now.timestamp() + off_s}, now) == words
    record_snapshot(host=world.host, facts={"time": utc_now().timestamp() + off_s})
    assert ("The clock was" in _page(alice, world)) == bool(words)


def test_the_history_marks_host_changes(world: World, alice: Client) -> None:
    record_snapshot(host=world.host, facts={"fingerprint": "a", "memory_bytes": 8 * 2**30})
    address = f"{reverse('history')}?benchmark=server/hello"
    assert alice.get(address).context["history"].breaks == ()

    record_snapshot(host=world.host, facts={"fingerprint": "b", "memory_bytes": 16 * 2**30})
    run = make_run(world.alice, [world.shas[0], world.shas[2]])
    finish_run(run, [1000, 850])
    page = alice.get(address)
    assert [each.before for each in page.context["history"].breaks] == [1, 2]
    assert page.content.decode().count("The host changed:") == 2
    assert "memory 8.00 GiB → 16.0 GiB" in get_text(page)


def test_the_profile_form_has_the_current_values(
    personas: Personas, alice: Client, mallory: Client
) -> None:
    save_profile(
        member=personas.alice, slug="t490s", name="T490s", memory_bytes=16 * 2**30, cores=4
    )
    page = alice.get(reverse("profiles"), {"profile": "t490s"}).content.decode()
    assert {"16.00", "t490s"} <= {*values(page, "input[value]")}
    assert mallory.get(reverse("profiles"), {"profile": "t490s"}).status_code == 404


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("memory_bytes", 8 * 2**30, "8.00 GiB"),
        ("clock_max_mhz", 4100.4, "4\u202f100 MHz"),
        ("uptime_s", 7200, "2 h 00 min"),
        ("temperatures", [41.5, 43.0], "42 °C, 43 °C"),
        ("load", [0.5, 1.25, 2.0], "0.5, 1.25, 2"),
        ("cores", 8, "8"),
        ("secure", True, "yes"),
        ("kernel", "6.1", "6.1"),
        ("smt", "notsupported", "not supported"),
        ("virtualisation", "kvm", "KVM"),
        ("container", "none", "none"),
        ("battery_percent", 80, "80 %"),
        ("nothing", [], "–"),
        ("disks", {"sda": 5}, "sda: 5"),
    ],
)
def test_a_fact_is_shown_with_its_unit(name: str, value: Any, shown: str) -> None:
    assert format_fact_value(name, value) == shown
