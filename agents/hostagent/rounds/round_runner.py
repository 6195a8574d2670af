"""All builds and trials of one plan, in order: a follower builds and then follows."""

from __future__ import annotations

import contextlib
import subprocess
import time
import traceback
from collections.abc import Iterator
from typing import Optional

from ..builds.build_steps import Beat
from ..builds.builder import ensure
from ..errors import Aborted, AgentError, BuildFailed, TrialFailed
from ..files import no_space
from ..hosts.all_hosts import Stage
from ..hosts.follower import follow
from ..hosts.local_host import Here
from ..paths import StepDir
from ..platform.linux.tuning import tuned
from ..platform.orphans import end_leftovers
from ..platform.processes import adopt_orphans, kill_descendants
from ..sandbox.directories import Grounds
from ..sandbox.tls_files import write_tls
from ..step.journal import Journal
from ..step.keepalive import Contact
from ..step.plan import Plan, Trial
from ..trials.trial_runner import run_trial


def carry_out(step: StepDir, plan: Plan, journal: Journal) -> None:
    """Do this host's part of the plan; Aborted where it cannot be done to its end.

    However it ends, nothing that it started is left, and the host is tuned as it was before.
    """
    adopt_orphans()
    end_leftovers(step.root)
    write_tls(step, plan)
    grounds = Grounds(step, plan)
    grounds.claim()
    try:
        with _tuning(step, plan, journal):
            _work(step, plan, journal, grounds)
    finally:
        kill_descendants()
        grounds.close()


@contextlib.contextmanager
def _tuning(step: StepDir, plan: Plan, journal: Journal) -> Iterator[None]:
    if not plan.tuning:
        yield
        return
    try:
        with tuned(step.root, plan.tuning) as said:
            journal.append("tuned", applied=said["applied"], refused=said["refused"])
            try:
                yield
            finally:
                kill_descendants()
    finally:
        journal.append("untuned")


def _work(step: StepDir, plan: Plan, journal: Journal, grounds: Grounds) -> None:
    contact = Contact(step, plan.silence_s)
    broken: dict[str, BuildFailed] = {}
    here = Here(step, plan, broken, grounds)
    builder = Builder(step, plan, journal, broken, grounds)
    if plan.is_lead:
        stage = Stage(here, step, plan, contact)
        with stage.met():
            builder.run(stage.beat)
            for trial in plan.trials:
                Turn(stage, trial, journal, broken).run()
    else:
        builder.run(contact.beat)
        follow(here, step, plan, journal, contact)


class Builder:
    """The builds of this host, and the trees that could not be built."""

    def __init__(
        self,
        step: StepDir,
        plan: Plan,
        journal: Journal,
        broken: dict[str, BuildFailed],
        grounds: Grounds,
    ) -> None:
        self._step = step
        self._grounds = grounds
        self._builds = [build for build in plan.builds if plan.me in build.on]
        self._journal = journal
        self._broken = broken

    def run(self, beat: Beat) -> None:
        for build in self._builds:
            beat()
            who = {"build": build.id, "commit": build.commit}
            self._journal.append("build_started", **who, label=build.label)
            began = time.monotonic()
            try:
                made = ensure(self._step, build, beat, self._grounds)
            except BuildFailed as failed:
                self._broken[build.tree] = failed
                self._journal.append(
                    "build_failed",
                    **who,
                    message=failed.message,
                    output=failed.output,
                )
                continue
            self._journal.append(
                "build_done",
                **who,
                cached=made.cached,
                seconds=round(time.monotonic() - began, 3),
                installed=made.installed,
            )


class Turn:
    """One trial and what the journal says of it."""

    def __init__(
        self, stage: Stage, trial: Trial, journal: Journal, broken: dict[str, BuildFailed]
    ) -> None:
        self._stage = stage
        self._trial = trial
        self._journal = journal
        self._broken = broken

    def run(self) -> None:
        """The trial, unless its result is there already; only Aborted ends more than it."""
        self._stage.beat()
        if not (self._stage.step.trial(self._trial.id) / "result.json").exists():
            if self._stage.dropped.has(self._trial.id):
                self._journal.append("trial_dropped", trial=self._trial.id)
                return
            self._journal.append("trial_started", trial=self._trial.id)
            self._stage.dropped.begin(self._trial.id)
            failed = self._failure()
            self._stage.dropped.begin(None)
            self._stage.clear()
            if failed is not None:
                self._fail(failed)
                return
        self._journal.append("trial_done", trial=self._trial.id)

    def _failure(self) -> Optional[TrialFailed]:
        try:
            self._need_build()
            run_trial(self._stage, self._trial, self._tell)
        except TrialFailed as failed:
            return self._of_full_disk(failed) or failed
        except Aborted:
            raise
        except (AgentError, OSError, subprocess.SubprocessError) as error:
            traceback.print_exc()
            kill_descendants()
            return TrialFailed("internal", str(error))
        return None

    def _of_full_disk(self, failed: TrialFailed) -> Optional[TrialFailed]:
        """The same failure with the host to blame for it, if its disk is full."""
        why = no_space(self._stage.step.root)
        if not why:
            return None
        return TrialFailed("output_lost", f"{why}: {failed.message}", failed.output)

    def _need_build(self) -> None:
        failed = self._broken.get(self._trial.tree)
        if failed is not None:
            raise TrialFailed("build_failed", failed.message, failed.output)

    def _tell(self, phase: str, quiet_s: float) -> None:
        self._journal.append("phase", trial=self._trial.id, phase=phase, quiet_s=quiet_s)

    def _fail(self, failed: TrialFailed) -> None:
        self._journal.append(
            "trial_failed",
            trial=self._trial.id,
            code=failed.code,
            message=failed.message,
            output=failed.output,
        )
