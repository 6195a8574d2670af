"""Golden runs: a host whose values have drifted is quarantined."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.accounts.models import AuditEntry, Membership, Role
from orchestrator.calibration.golden import (
    advance_golden_checks,
    judge_golden,
    load_golden_statuses,
    reset_references,
)
from orchestrator.calibration.models import GoldenOutcome
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import InvalidRequestError, NotFoundError, PermissionRefusedError
from orchestrator.fleet.host_settings import put_in_maintenance, release_host
from orchestrator.fleet.models import Host, HostChange, HostSnapshot
from orchestrator.runs.golden import (
    NewGolden,
    load_due_golden_checks,
    remove_golden,
    set_golden,
    start_golden,
)
from orchestrator.runs.models import GoldenCheck, Job, Run, Trial
from orchestrator.stats.drift import FIRST_VALUES
from tests.support.factories import (
    DEFINITION,
    Personas,
    finish_run,
    make_definition,
    make_local_host,
    make_run,
)
from tests.support.world import World


@dataclass(kw_only=True)
class GoldenWorld(World):
    """With a golden run of the host each hour, and a clock that only the test moves."""

    now: datetime = field(default_factory=utc_now)

    @property
    def check(self) -> GoldenCheck:
        return GoldenCheck.objects.select_related("host__team", "last_run").get(host=self.host)

    def later(self, **span: float) -> datetime:
        self.now += timedelta(**span)
        return self.now

    def golden_run(self, rate: float) -> GoldenOutcome:
        """An hour passes, the golden run measures `rate` requests a second."""
        advance_golden_checks(self.later(hours=1))
        run = self.check.last_run
        assert run is not None
        assert run.state == "queued"
        finish_run(run, [rate])
        advance_golden_checks(self.now)
        return GoldenOutcome.objects.get(run=run)

    def repeated_run(self, rate: float) -> GoldenOutcome:
        """Measure the run that an unusual value started at once, without any time passing."""
        run = self.check.last_run
        assert run is not None
        assert run.state == "queued", "it was not repeated"
        finish_run(run, [rate])
        advance_golden_checks(self.now)
        return GoldenOutcome.objects.get(run=run)

    def drifted(self, rate: float) -> list[str]:
        """Two runs in a row measure `rate`."""
        return [self.golden_run(rate).verdict, self.repeated_run(rate).verdict]

    def golden_runs(self, rates: Sequence[float]) -> list[str]:
        return [self.golden_run(rate).verdict for rate in rates]

    def state(self) -> tuple[str, str]:
        self.host.refresh_from_db()
        return self.host.state, self.host.message


@pytest.fixture
def world(personas: Personas, data_dir: Path, tmp_path: Path) -> GoldenWorld:
    world = GoldenWorld.make(personas, tmp_path)
    set_golden(member=world.alice, host_id=world.host.pk, new=_build_golden(world))
    return world


def _build_golden(world: GoldenWorld, **changes: Any) -> NewGolden:
    given = {"benchmark": "hello", "commit": world.shas[0], "every_hours": 1}
    return NewGolden(**{**given, **changes})


def test_a_golden_run_is_queued_once_ahead_of_others(world: GoldenWorld) -> None:
    advance_golden_checks(world.now)
    advance_golden_checks(world.now)
    run = Run.objects.get()
    assert (run.trigger, run.priority, run.requested_by) == ("golden", 1, world.personas.alice.user)
    assert [variant.commit.sha for variant in run.variants.all()] == [world.shas[0]]
    assert world.check.last_run == run
    assert not world.check.judged
    assert load_golden_statuses(world.personas.bob)[world.host.pk].word == "running"


def test_three_golden_runs_are_learning_and_then_steady(world: GoldenWorld) -> None:
    assert world.golden_runs([1000, 1004, 997, 1001]) == [*["learning"] * 3, "steady"]
    assert world.state() == ("ready", "")
    assert world.check.message.startswith("steady: ")
    assert "against 3 earlier golden runs" in world.check.message
    assert load_golden_statuses(world.personas.alice)[world.host.pk].word == "steady"


@pytest.mark.parametrize("rate", [880, 1130])
def test_a_drifted_host_is_quarantined_with_the_reason(world: GoldenWorld, rate: float) -> None:
    world.golden_runs([1000, 1004, 997, 1001])
    steady = GoldenOutcome.objects.latest("at").at
    assert world.golden_run(rate).verdict == "unusual"
    assert world.state() == ("ready", "")
    assert world.check.message.endswith("; it is measured again")
    assert world.repeated_run(rate).verdict == "drifted"
    state, message = world.state()
    assert state == "quarantined"
    assert message.startswith("golden run: drifted: ")
    assert re.search(r"moved by [+−]1\d\.\d % to ", message)
    assert "where 4 earlier golden runs had" in message
    assert "5.0 % is allowed" in message
    assert f"steady until {steady:%Y-%m-%d %H:%M} UTC" in message
    assert AuditEntry.objects.latest("at").action == "host.quarantined"


def test_the_drift_message_names_metric_change_and_earlier_values(world: GoldenWorld) -> None:
    world.golden_runs([1000, 1000, 1000])
    world.drifted(800)
    message = world.state()[1]
    # Latency and CPU time are 1/rate: they moved by a quarter, the rate itself by a fifth.
    assert re.search(r"(Latency p50|CPU per 1,000 requests) moved by \+25.0 % to ", message)
    assert "had 4.00 ms to 4.00 ms" in message or "had 900 ms / 1k to 900 ms / 1k" in message
    assert message.endswith("2 other values moved too")


def test_a_noisy_host_has_a_wider_tolerance(world: GoldenWorld) -> None:
    world.golden_runs([1000, 900, 1100, 950, 1050])
    assert world.golden_run(880).verdict == "steady"
    assert world.state()[0] == "ready"


def test_a_host_that_fails_its_golden_run_is_quarantined(world: GoldenWorld) -> None:
    advance_golden_checks(world.now)
    Run.objects.update(state="failed", message="here: the server does not start")
    advance_golden_checks(world.now)
    assert world.state() == (
        "quarantined",
        "golden run: failed: here: the server does not start",
    )


def test_an_unreachable_host_has_not_drifted(world: GoldenWorld) -> None:
    advance_golden_checks(world.now)
    Host.objects.update(state="unreachable", message="no route")
    Run.objects.update(state="failed", message="here: no route")
    advance_golden_checks(world.now)
    assert world.state()[0] == "unreachable"
    assert world.check.message.startswith("not judged: the host could not be reached")


def test_a_cancelled_golden_run_has_no_verdict(world: GoldenWorld) -> None:
    advance_golden_checks(world.now)
    Run.objects.update(state="cancelled")
    advance_golden_checks(world.now)
    assert world.state()[0] == "ready"
    assert GoldenOutcome.objects.get().verdict == "not judged"


def test_a_golden_run_without_a_valid_trial_fails_with_its_reason(world: GoldenWorld) -> None:
    advance_golden_checks(world.now)
    run = world.check.last_run
    assert run is not None
    finish_run(run, [1000])
    Trial.objects.update(validity="invalid", reasons=["steal: another guest took the CPU"])
    advance_golden_checks(world.now)
    assert world.state()[0] == "quarantined"
    assert "no trial of its golden run is valid; steal: another guest" in world.state()[1]


def test_only_steady_runs_are_references(world: GoldenWorld) -> None:
    world.golden_runs([1000, 1000, 1000])
    for _ in range(3):
        assert world.drifted(800) == ["unusual", "drifted"]
        release_host(member=world.personas.alice, host_id=world.host.pk)
    assert world.golden_run(1000).verdict == "steady"


def test_a_member_resets_the_reference(world: GoldenWorld) -> None:
    world.golden_runs([1000, 1000, 1000])
    assert world.drifted(800) == ["unusual", "drifted"]
    release_host(member=world.personas.alice, host_id=world.host.pk)
    with pytest.raises(PermissionRefusedError):
        reset_references(member=world.personas.bob, host_id=world.host.pk)
    with pytest.raises(NotFoundError):
        reset_references(member=world.personas.mallory, host_id=world.host.pk)
    reset_references(member=world.personas.alice, host_id=world.host.pk)
    assert world.golden_runs([800, 801, 799, 800]) == [*["learning"] * 3, "steady"]


def test_a_new_epoch_resets_the_reference(world: GoldenWorld) -> None:
    world.golden_runs([1000, 1000, 1000])
    snapshot = HostSnapshot.objects.create(host=world.host, facts={}, fingerprint="new")
    HostChange.objects.create(
        host=world.host, snapshot=snapshot, changed={"kernel": ["1", "2"]}, at=snapshot.taken_at
    )
    assert world.golden_run(800).verdict == "learning"


def test_a_new_definition_resets_the_reference(world: GoldenWorld) -> None:
    world.golden_runs([1000, 1000, 1000])
    project = world.check.benchmark.project
    source = DEFINITION.replace("connections: [4]", "connections: [8]")
    make_definition(world.personas.alice, project, source=source)
    assert world.golden_run(800).verdict == "learning"


def test_other_runs_of_the_commit_are_not_golden_runs(world: GoldenWorld) -> None:
    for _ in range(3):
        finish_run(make_run(world.personas.alice, world.shas[:2]), [1000, 1000])
    assert world.golden_run(800).verdict == "learning"


def test_a_golden_run_is_due_after_hours(world: GoldenWorld) -> None:
    world.golden_run(1000)
    assert load_due_golden_checks(world.now + timedelta(minutes=59)) == []
    assert load_due_golden_checks(world.now + timedelta(minutes=60)) == [world.check]


def test_a_golden_run_is_due_after_finished_jobs(world: GoldenWorld) -> None:
    set_golden(
        member=world.personas.alice,
        host_id=world.host.pk,
        new=_build_golden(world, every_hours=None, every_jobs=2),
    )
    world.now = utc_now()
    world.golden_run(1000)
    GoldenCheck.objects.update(last_at=utc_now())
    far = world.now + timedelta(days=100)
    assert load_due_golden_checks(far) == []
    finish_run(make_run(world.personas.alice, world.shas[:2]), [1000, 1000])
    assert load_due_golden_checks(far) == []
    finish_run(make_run(world.personas.alice, world.shas[:2]), [1000, 1000])
    assert load_due_golden_checks(far) == [world.check]
    Job.objects.update(state="failed")
    assert load_due_golden_checks(far) == []


@pytest.mark.parametrize(
    "state", ["unconfirmed", "unreachable", "maintenance", "quarantined", "retired"]
)
def test_no_run_is_queued_for_a_host_that_cannot_be_used(state: str, world: GoldenWorld) -> None:
    Host.objects.update(state=state)
    advance_golden_checks(world.now)
    assert not Run.objects.exists()


def test_two_concurrent_ticks_start_and_evaluate_once(world: GoldenWorld) -> None:
    stale = load_due_golden_checks(world.now)[0]
    assert start_golden(stale, world.now) is not None
    assert start_golden(stale, world.now) is None
    check = world.check
    assert check.last_run is not None
    finish_run(check.last_run, [1000])
    check = world.check
    assert judge_golden(check) is not None
    assert judge_golden(check) is None
    assert GoldenOutcome.objects.count() == 1


def test_a_golden_run_that_cannot_start_reports_the_reason_and_waits(world: GoldenWorld) -> None:
    Membership.objects.filter(user=world.personas.alice.user).update(role=Role.VIEWER)
    advance_golden_checks(world.now)
    assert not Run.objects.exists()
    assert world.check.message.startswith("no golden run was started: the user alice is a viewer")
    assert load_due_golden_checks(world.now) == []
    Membership.objects.filter(user=world.personas.alice.user).update(role=Role.MEMBER)
    advance_golden_checks(world.later(hours=1))
    assert Run.objects.count() == 1


def test_a_deleted_run_does_not_block_the_check(world: GoldenWorld) -> None:
    advance_golden_checks(world.now)
    Run.objects.all().delete()
    advance_golden_checks(world.now)
    assert world.check.judged
    advance_golden_checks(world.later(hours=1))
    assert Run.objects.count() == 1


def test_a_host_in_maintenance_is_not_quarantined(world: GoldenWorld) -> None:
    advance_golden_checks(world.now)
    put_in_maintenance(member=world.personas.alice, host_id=world.host.pk, reason="new fan")
    Run.objects.update(state="failed", message="stopped")
    advance_golden_checks(world.now)
    assert world.state() == ("maintenance", "alice: new fan")
    assert world.check.message == "failed: stopped"


def test_an_error_of_one_host_does_not_stop_another(
    world: GoldenWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_local_host(world.personas.alice, "there")
    set_golden(member=world.personas.alice, host_id=other.pk, new=_build_golden(world))
    GoldenCheck.objects.filter(host=world.host).update(judged=False)
    monkeypatch.setattr("orchestrator.calibration.golden.judge_golden", lambda check: 1 / 0)
    advance_golden_checks(world.now)
    assert Run.objects.get().jobs.get().placements.get(role="target").wanted_host == other


def test_another_commit_resets_the_reference(world: GoldenWorld) -> None:
    world.golden_runs([1000, 1000, 1000])
    set_golden(
        member=world.personas.alice,
        host_id=world.host.pk,
        new=_build_golden(world, commit=world.shas[1]),
    )
    assert (world.check.last_run, world.check.message) == (None, "")
    assert world.golden_run(800).verdict == "learning"


def test_the_same_commit_keeps_the_reference(world: GoldenWorld) -> None:
    world.golden_runs([1000, 1000, 1000])
    set_golden(
        member=world.personas.alice, host_id=world.host.pk, new=_build_golden(world, tolerance=0.3)
    )
    assert world.golden_run(850).verdict == "steady"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"every_hours": None}, "every_hours"),
        ({"every_hours": 0, "every_jobs": 0}, "every_hours"),
        ({"every_hours": 10_000}, "every_hours"),
        ({"every_jobs": 1_000_000}, "every_jobs"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"tolerance": 1.5}, "tolerance"),
    ],
)
def test_an_invalid_golden_run_is_reported(
    world: GoldenWorld, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        set_golden(
            member=world.personas.alice, host_id=world.host.pk, new=_build_golden(world, **changes)
        )
    assert caught.value.field == field


def test_viewers_and_strangers_cannot_set_or_remove_golden_runs(world: GoldenWorld) -> None:
    for member, error in (
        (world.personas.bob, PermissionRefusedError),
        (world.personas.mallory, NotFoundError),
    ):
        with pytest.raises(error):
            set_golden(member=member, host_id=world.host.pk, new=_build_golden(world))
        with pytest.raises(error):
            remove_golden(member=member, host_id=world.host.pk)
    assert load_golden_statuses(world.personas.mallory) == {}
    remove_golden(member=world.personas.alice, host_id=world.host.pk)
    assert not GoldenCheck.objects.exists()


@pytest.mark.parametrize("second", [1000, 1250])
def test_an_unusual_value_that_is_not_confirmed_quarantines_nothing(
    world: GoldenWorld, second: float
) -> None:
    world.golden_runs([1000, 1004, 997, 1001])
    assert world.golden_run(800).verdict == "unusual"
    again = world.repeated_run(second)
    assert again.verdict == ("steady" if second == 1000 else "unusual"), "on the other side"
    assert world.state() == ("ready", "")
    assert not Run.objects.filter(state="queued").exists(), "it is repeated once"
    assert not GoldenOutcome.objects.filter(verdict="unusual", is_reference=True).exists()


def test_a_slow_drift_is_reported_and_the_host_stays_in_use(world: GoldenWorld) -> None:
    """The host gets 0.5 % slower each time: each value is usual among the newest ones."""
    noise = [1.001, 0.999, 1.0, 1.0005, 0.9995]
    verdicts = world.golden_runs([1000 * noise[run % 5] for run in range(FIRST_VALUES)])
    assert set(verdicts) == {"learning", "steady"}
    for run in range(8):
        outcome = world.golden_run(1000 * 0.995**run * noise[run % 5])
        if outcome.verdict == "slow drift":
            break
    assert outcome.verdict == "slow drift"
    assert re.search(
        r"slow drift: .* has moved by [+−]\d\.\d % since the first 20", outcome.message
    )
    assert outcome.is_reference
    assert world.state() == ("ready", "")
    reset_references(member=world.personas.alice, host_id=world.host.pk)
    assert world.golden_run(960).verdict == "learning"
