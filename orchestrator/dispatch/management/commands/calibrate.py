"""Calibrates a host: one commit against itself, to find the changes that the host can detect."""

import time
from argparse import ArgumentParser
from itertools import count
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cli.pitwall.units import format_value
from orchestrator.accounts.members import Member, build_member
from orchestrator.accounts.models import Membership, Role
from orchestrator.calibration.calibrations import judge_calibration
from orchestrator.calibration.sensitivity import Sensitivity, list_sensitivities
from orchestrator.core.errors import PitwallError
from orchestrator.core.progress import Progress, add_quiet, build_progress
from orchestrator.dispatch.wakeups import wake_engine
from orchestrator.fleet.models import Host
from orchestrator.results.models import Calibration
from orchestrator.runs.calibration import DEFAULT_PAIRS, NewCalibration, start_calibration
from orchestrator.runs.models import Run
from orchestrator.runs.selectors import load_progress as progress_of_run
from orchestrator.runs.states import RUN_ENDED

POLL_S = 1.0
POLLS_PER_BAR = 4


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("host", help="name of the host")
        parser.add_argument("benchmark", help="BENCHMARK or PROJECT/BENCHMARK")
        parser.add_argument("--commit", default="", help="default: the golden run's or the newest")
        parser.add_argument("--pairs", type=int, default=DEFAULT_PAIRS)
        parser.add_argument("--team", help="slug; required if two teams have a host of this name")
        parser.add_argument("--wait", action="store_true", help="wait for the result")

        add_quiet(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            run = _start(options)
        except PitwallError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"run {run.pk}: {run.rounds} rounds")
        if options["wait"]:
            with build_progress(options, "Calibrating") as show:
                calibration = _wait_for_calibration(run, show)
            self._print_calibration(calibration)

    def _print_calibration(self, calibration: Calibration | None) -> None:
        if calibration is None or not calibration.readings:
            why = calibration.message if calibration else "its run has no host"
            raise CommandError(f"the calibration has no result: {why}")
        for sight in list_sensitivities(calibration):
            self.stdout.write(_format_line(sight))


def _start(options: dict[str, Any]) -> Run:
    host = _load_host(options["host"], options["team"])
    project, _, benchmark = options["benchmark"].rpartition("/")
    new = NewCalibration(
        benchmark=benchmark,
        project=project or None,
        commit=options["commit"],
        pairs=options["pairs"],
    )
    run = start_calibration(member=_load_owner(host), host_id=host.pk, new=new)
    wake_engine()
    return run


def _load_host(name: str, team: str | None) -> Host:
    hosts = Host.objects.select_related("team").filter(name=name)
    matches = list(hosts.filter(team__slug=team) if team else hosts)
    if not matches:
        raise CommandError(f"there is no host {name}{f' in the team {team}' if team else ''}")
    if len(matches) > 1:
        teams = ", ".join(sorted(host.team.slug for host in matches))
        raise CommandError(f"several teams have a host {name}: choose one of {teams} with --team")
    return matches[0]


def _load_owner(host: Host) -> Member:
    """Return the first owner of the team as the requester; the operator has all permissions."""
    owners = Membership.objects.select_related("team", "user").filter(team=host.team)
    first = owners.filter(role=Role.OWNER).order_by("pk").first()
    if first is None:
        raise CommandError(
            f"the team {host.team.slug} has no owner: give one of its members that role"
        )
    return build_member(first)


def _wait_for_calibration(run: Run, show: Progress) -> Calibration | None:
    """Evaluate the run as soon as it has ended; beat would do so half a minute later."""
    for look in count():
        if run.state in RUN_ENDED:
            break
        time.sleep(POLL_S)
        run.refresh_from_db()
        # Work on this machine may be part of the noise, so query rarely.
        if look % POLLS_PER_BAR == 0:
            now = progress_of_run(run)
            show(now.trials_done, now.trials_total, now.phase)
    return judge_calibration(run)


def _format_line(sight: Sensitivity) -> str:
    noise = sight.noise
    sees = ", ".join(f"{n}: {format_value(change, 'ratio')}" for n, change in sight.smallest)
    return (
        f"{sight.label or 'the only case'}, {sight.metric.title}: "
        f"noise {format_value(noise.sigma, 'ratio')} "
        f"({format_value(noise.low, 'ratio')} to {format_value(noise.high, 'ratio')}, "
        f"{noise.pairs} pairs){', drifts' if noise.drifts else ''}; blocks: change detected {sees}"
    )
