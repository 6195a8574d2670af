"""All builds and trials of one plan, in order; a follower builds and then serves its lead."""

from __future__ import annotations

import contextlib
import subprocess
import time
import traceback
from collections.abc import Iterator
from itertools import zip_longest
from typing import Optional

from ..builds.build_steps import Heartbeat
from ..builds.builder import ensure_build, find_build
from ..errors import Aborted, AgentError, BuildFailed, TrialFailed
from ..files import describe_full_disk
from ..hosts.all_hosts import AllHosts
from ..hosts.follower import follow
from ..hosts.local_host import LocalHost
from ..paths import StepDir
from ..platform.linux.tuning import Tuning
from ..platform.orphans import kill_orphans
from ..platform.processes import adopt_orphans, kill_descendants
from ..platform.sleep_inhibitor import inhibit_sleep
from ..platform.system import read_topology
from ..sandbox.data_folders import DataFolders
from ..sandbox.directories import Sandbox
from ..sandbox.tls_files import write_tls
from ..step.journal import Journal
from ..step.keepalive import Keepalive
from ..step.plan import Build, Plan, Trial
from ..trials.poll_pause import PollPause, compute_wait_for_poll_s
from ..trials.prepare_runner import PrepareRunner
from ..trials.quiet_wait import QuietWait
from ..trials.trial_progress import TrialProgress
from ..trials.trial_runner import run_trial
from .disk_space import DiskSpace
from .settling import read_rest_state, settle
from .trial_placement import place_trials


def run_round(step: StepDir, plan: Plan, journal: Journal) -> None:
    """Execute the plan on this host; Aborted if the round cannot be completed.

    In any case all started processes are killed, and the tuning of the host is undone.
    """
    adopt_orphans()
    kill_orphans(step.root)
    write_tls(step, plan)
    sandbox = Sandbox(step, plan)
    sandbox.close_all()
    data = DataFolders(step, sandbox)
    data.remove_others()
    try:
        with inhibit_sleep(), _tune_host(step, plan, journal) as tuning:
            placed = place_trials(plan, read_topology())
            _run_plan(step, placed, journal, sandbox, data, tuning)
    finally:
        kill_descendants()
        data.remove_trial_data()
        sandbox.close()


@contextlib.contextmanager
def _tune_host(step: StepDir, plan: Plan, journal: Journal) -> Iterator[Tuning]:
    tuning = Tuning()
    if not plan.tuning:
        yield tuning
        return
    try:
        with tuning.apply(step.root, plan.tuning):
            journal.append("tuned", **tuning.as_json())
            try:
                yield tuning
            finally:
                kill_descendants()
    finally:
        journal.append("untuned", left=tuning.left)


def _run_plan(
    step: StepDir,
    plan: Plan,
    journal: Journal,
    sandbox: Sandbox,
    data: DataFolders,
    tuning: Tuning,
) -> None:
    keepalive = Keepalive(step, plan.silence_s)
    failed_builds: dict[str, BuildFailed] = {}
    local_host = LocalHost(step, plan, failed_builds, sandbox, data, tuning)
    builder = RoundBuilds(step, plan, journal, failed_builds, sandbox)
    if plan.is_lead:
        all_hosts = AllHosts(local_host, step, plan, keepalive)
        with all_hosts.connected():
            builder.run(all_hosts.heartbeat)
            _run_trials(all_hosts, plan, journal, failed_builds, builder.built_s)
    else:
        builder.run(keepalive.heartbeat)
        follow(local_host, step, plan, journal, keepalive)


def _run_trials(
    all_hosts: AllHosts,
    plan: Plan,
    journal: Journal,
    failed_builds: dict[str, BuildFailed],
    built_s: float,
) -> None:
    pause, quiet_wait = PollPause(), QuietWait(all_hosts)
    prepare = PrepareRunner(all_hosts, pause)
    if built_s and plan.trials and plan.trials[0].tree not in failed_builds:
        _announce_first_trial(all_hosts, plan.trials[0], journal, pause, built_s)
    for trial, following in zip_longest(plan.trials, plan.trials[1:]):
        task = TrialTask(all_hosts, trial, journal, failed_builds, pause, quiet_wait, prepare)
        task.run(following)


def _announce_first_trial(
    all_hosts: AllHosts, first: Trial, journal: Journal, pause: PollPause, built_s: float
) -> None:
    """Wait for a poll: builds are polled rarely, so the next one would come in the first load."""
    began, wait_s = time.monotonic(), compute_wait_for_poll_s(built_s)
    pause.announce(first, wait_s)
    journal.append("phase", trial=None, phase="starting the first trial", quiet_s=pause.left_s())
    all_hosts.sleep_until(began + wait_s)


class RoundBuilds:
    """The builds of this host, and the failures by tree."""

    def __init__(
        self,
        step: StepDir,
        plan: Plan,
        journal: Journal,
        failed_builds: dict[str, BuildFailed],
        sandbox: Sandbox,
    ) -> None:
        self._step = step
        self._sandbox = sandbox
        self._plan = plan
        self._builds = [build for build in plan.builds if plan.me in build.on]
        self._journal = journal
        self._failed_builds = failed_builds
        #: Seconds of the builds that were not cached.
        self.built_s = 0.0

    def run(self, heartbeat: Heartbeat) -> None:
        disk = DiskSpace(self._step, self._plan, self._journal, heartbeat)
        disk.remove_old_files()
        before = read_rest_state()
        for build in self._builds:
            self._run(build, heartbeat, disk)
        # A later build that changed a shared install has failed and removed it.
        for build in self._builds:
            failed = build.tree in self._failed_builds
            if not failed and find_build(self._step, build, self._sandbox) is None:
                self._run(build, heartbeat, disk)
        settle(before, self.built_s, self._journal, heartbeat)

    def _run(self, build: Build, heartbeat: Heartbeat, disk: DiskSpace) -> None:
        heartbeat()
        if find_build(self._step, build, self._sandbox) is None:
            disk.make_room()
        who = {"build": build.id, "commit": build.commit}
        self._journal.append("build_started", **who, label=build.label)
        began = time.monotonic()
        try:
            result = ensure_build(self._step, build, heartbeat, self._sandbox)
        except BuildFailed as failed:
            if full := describe_full_disk(self._step.root):
                raise Aborted("disk_full", f"{full}: {failed.message}") from failed
            self._failed_builds[build.tree] = failed
            self.built_s += time.monotonic() - began
            self._journal.append(
                "build_failed", **who, message=failed.message, output=failed.output
            )
            return
        seconds = time.monotonic() - began
        if not result.cached:
            self.built_s += seconds
            disk.add(build.tree)
        self._journal.append(
            "build_done",
            **who,
            cached=result.cached,
            seconds=round(seconds, 3),
            installed=result.installed,
            digests=result.digests._asdict(),
        )


class TrialTask:
    """One trial of the round, and its events in the journal."""

    def __init__(
        self,
        all_hosts: AllHosts,
        trial: Trial,
        journal: Journal,
        failed_builds: dict[str, BuildFailed],
        pause: PollPause,
        quiet_wait: QuietWait,
        prepare: PrepareRunner,
    ) -> None:
        self._all_hosts = all_hosts
        self._trial = trial
        self._journal = journal
        self._failed_builds = failed_builds
        self._pause = pause
        self._quiet_wait = quiet_wait
        self._prepare = prepare

    def run(self, following: Optional[Trial]) -> None:
        """Run the trial unless its result exists; only Aborted ends more than the trial.

        The results are complete before the cooldown, so that they are read during it.
        """
        self._all_hosts.heartbeat()
        cooldown_s = 0.0
        if not (self._all_hosts.step.trial(self._trial.id) / "result.json").exists():
            if self._all_hosts.dropped.has(self._trial.id):
                self._journal.append("trial_dropped", trial=self._trial.id)
                return
            self._journal.append("trial_started", trial=self._trial.id)
            self._all_hosts.dropped.begin(self._trial.id)
            failed = self._run()
            self._all_hosts.dropped.begin(None)
            self._all_hosts.clear()
            if failed is not None:
                self._report_failure(failed)
                return
            cooldown_s = self._trial.cooldown_s
        self._pause.end(following, cooldown_s)
        self._journal.append("trial_done", trial=self._trial.id, quiet_s=self._pause.left_s())
        self._all_hosts.cool_down(cooldown_s)

    def _run(self) -> Optional[TrialFailed]:
        try:
            self._require_build()
            progress = TrialProgress(self._trial, self._journal, self._pause)
            run_trial(self._all_hosts, self._trial, self._quiet_wait, self._prepare, progress)
        except TrialFailed as failed:
            return self._blame_full_disk(failed) or failed
        except Aborted:
            raise
        except (AgentError, OSError, subprocess.SubprocessError) as error:
            traceback.print_exc()
            kill_descendants()
            return TrialFailed("internal", str(error))
        return None

    def _blame_full_disk(self, failed: TrialFailed) -> Optional[TrialFailed]:
        """Return the failure as one of the host, if its disk is full."""
        why = describe_full_disk(self._all_hosts.step.root)
        if not why:
            return None
        return TrialFailed("output_lost", f"{why}: {failed.message}", failed.output)

    def _require_build(self) -> None:
        failed = self._failed_builds.get(self._trial.tree)
        if failed is not None:
            raise TrialFailed("build_failed", failed.message, failed.output)

    def _report_failure(self, failed: TrialFailed) -> None:
        self._journal.append(
            "trial_failed",
            trial=self._trial.id,
            code=failed.code,
            message=failed.message,
            output=failed.output,
        )
