"""The execution of a run on this machine: facts, builds, rounds. The agent is the same."""

import json
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from agents.hostagent.commands.status import status
from orchestrator.benchmarks.lfs_pointers import LfsFile
from orchestrator.benchmarks.matrix import find_unsupported_reason
from orchestrator.benchmarks.models import BuildSource, Case
from orchestrator.benchmarks.secret_names import list_secret_names
from orchestrator.comparisons.same_builds import IdentifiedBuild
from orchestrator.core.clock import utc_now
from orchestrator.core.errors import HostError
from orchestrator.dispatch.agent import Agent
from orchestrator.dispatch.capacities import measure_at_shares
from orchestrator.dispatch.here.deciding import InterimAnalyses
from orchestrator.dispatch.here.reading import MeasuredTrial, read_measured_trial
from orchestrator.dispatch.here.rows import LocalRows, OwnMachine
from orchestrator.dispatch.here.source import build_archive, list_lfs_files, pack_lfs_files
from orchestrator.dispatch.rounds import KEEP_DAYS, build_shared_plan, build_step_id
from orchestrator.dispatch.sources import build_lfs_path, build_source_path
from orchestrator.dispatch.stage import Stage, resolve_cases
from orchestrator.dispatch.tls import make_certificates, needs_tls
from orchestrator.dispatch.tools import collect_tool_needs, locate_tool
from orchestrator.dispatch.trial_files import fetch_files
from orchestrator.dispatch.unsupported_cases import find_unsupported
from orchestrator.loadtools.metrics import CAPACITY_METRIC
from orchestrator.runs.models import Trial, Until
from orchestrator.transport.local import LocalTransport

#: The journal is a local file: polling it costs less than a request to another machine.
POLL_S = 0.2
LOCALHOST = "127.0.0.1"
#: Trials done, total trials, current activity.
ShowProgress = Callable[[int, int, str], None]


class LocalMeasurement:
    """The measurement of `rows` below the folder `root`."""

    def __init__(self, rows: LocalRows, root: Path, show_progress: ShowProgress) -> None:
        self.rows = rows
        self.root = root
        self.results: dict[str, MeasuredTrial] = {}
        self.notes: list[str] = []
        self.builds: set[IdentifiedBuild] = set()
        self._total = len(rows.trials)
        self._show_progress = show_progress
        self._transport = LocalTransport(root)
        assert rows.job.host is not None
        self._host = rows.job.host
        self._agent = Agent(self._transport, python=self._host.python)
        self._job_hosts = OwnMachine(rows.job)

    def measure(self) -> None:
        """Fill `results`, by the id of the trial, `notes` and `builds`.

        HostError if this machine cannot measure any of it.
        """
        stage = replace(self._stage(), sources=self._send_sources())
        tls = self._certificates()
        able = [case for case in self.rows.cases if case.pk in stage.specs]
        analyses = InterimAnalyses(self.rows, able)
        for number in range(1, self.rows.rounds + 1):
            self.rows.job.round = number
            trials = self._list_trials(number, analyses.open_cases())
            planned = self._measure_at_shares(stage)
            self._round(build_shared_plan(self.rows.job, planned, trials, {}), trials, tls)
            for line in analyses.analyse(self.results, number):
                self._total = self._total_with(analyses, number)
                self._show_text(line)
            if not analyses.open_cases():
                break
        self._leave_out(analyses)

    def _measure_at_shares(self, stage: Stage) -> Stage:
        """Return the stage with fixed rates in place of the searches whose result is known."""
        if len(self.rows.variants) < 2:
            return stage
        capacities: dict[int, float] = {}
        for trial in sorted(self.rows.trials, key=lambda each: each.round):
            result = self.results.get(str(trial.pk))
            if result is None or not result.counts or trial.variant is not self.rows.variants[0]:
                continue
            if CAPACITY_METRIC in result.readings:
                capacities.setdefault(trial.case_id, result.readings[CAPACITY_METRIC])
        specs = measure_at_shares(stage.specs, capacities)
        return replace(stage, specs=specs, capacities=capacities)

    def _list_trials(self, number: int, cases: set[int]) -> list[Trial]:
        """Return the trials of a round that belong to open cases."""
        return [each for each in self.rows.trials if each.round == number and each.case_id in cases]

    def _total_with(self, analyses: InterimAnalyses, after: int) -> int:
        """Return the number of executed trials and of those that may follow."""
        cases = analyses.open_cases()
        later = [each for each in self.rows.trials if each.round > after and each.case_id in cases]
        return len(self.results) + len(later)

    def _leave_out(self, analyses: InterimAnalyses) -> None:
        """Omit trials that were not needed, so that they do not count as failed."""
        needed = [
            each
            for each in self.rows.trials
            if str(each.pk) in self.results or not analyses.is_decided(each.case_id)
        ]
        self.rows = replace(self.rows, trials=needed)
        self.notes += analyses.lines()

    def _stage(self) -> Stage:
        spec, cases = self.rows.spec, list(self.rows.cases)
        self._show_progress(0, len(self.rows.trials), "reading the facts of this machine")
        programs = {name for each in resolve_cases(spec, cases).values() for name in each.requires}
        facts = self._facts(sorted(programs))
        if names := list_secret_names(resolve_cases(spec, cases).values()):
            raise HostError(
                f"the definition names the secrets {', '.join(names)}, which only a run on the "
                "server gets: start a run there"
            )
        own = {case.pk: find_unsupported_reason(spec, case.parameters) for case in cases}
        candidates = [case for case in cases if not own[case.pk]]
        lacking = {**own, **find_unsupported(spec, candidates, {"a": facts}, self._job_hosts)}
        self.notes += [f"{each.label}: {lacking[each.pk]}" for each in cases if lacking[each.pk]]
        able = [case for case in cases if not lacking[case.pk]]
        if not able:
            raise HostError("; ".join(dict.fromkeys(lacking.values())))
        return Stage(
            run=self.rows.job.run,
            spec=spec,
            specs=resolve_cases(spec, able),
            job_hosts=self._job_hosts,
            facts={"a": facts},
            tools=self._tools(able, facts),
            warmups={},
        )

    def _facts(self, programs: Sequence[str]) -> dict[str, Any]:
        """Return the facts of this machine without git: commits come as archives."""
        there = self._agent.ready(
            repository="none",
            commits=[],
            paths=[],
            programs=programs,
        )
        tools = {**(there.facts.get("tools") or {}), "git": None}
        return {**there.facts, "tools": tools}

    def _tools(self, cases: Sequence[Case], facts: Mapping[str, Any]) -> dict[str, str]:
        paths = {}
        for name, needs in collect_tool_needs(
            self.rows.spec, [each.parameters for each in cases]
        ).items():
            paths[name], own = locate_tool(name, facts, needs)
            if own is not None and not (self.root / own.remote_path).exists():
                content = Path(own.path).read_bytes()
                self._transport.put(content, own.remote_path, mode=0o755)
        return paths

    def _send_sources(self) -> dict[int, BuildSource]:
        """Put the commits into the work directory; return what the agent needs to know of them."""
        repository = Path(self.rows.job.run.definition.benchmark.project.repository_url)
        sources = {}
        for commit in (variant.commit for variant in self.rows.variants):
            files = list_lfs_files(repository, commit.sha)
            archive = build_archive(repository, commit.sha)
            self._transport.put(archive, build_source_path(commit.sha))
            if files:
                self._put_lfs_files(repository, commit.sha, files)
            sources[commit.pk] = BuildSource(commit=commit, has_lfs_files=bool(files))
        return sources

    def _put_lfs_files(self, repository: Path, sha: str, files: Sequence[LfsFile]) -> None:
        with tempfile.TemporaryFile(dir=self.root) as packed:
            pack_lfs_files(repository, files, packed)
            packed.seek(0)
            self._transport.put(packed, build_lfs_path(sha))

    def _certificates(self) -> dict[str, str] | None:
        if not needs_tls(self.rows.spec):
            return None
        return asdict(make_certificates([LOCALHOST], now=utc_now()))

    def _round(self, plan: dict[str, Any], trials: Sequence[Trial], tls: Any) -> None:
        job, step = str(self.rows.job.pk), build_step_id(self.rows.job)
        disk = {"limit_bytes": self._host.disk_limit_bytes, "keep_days": KEEP_DAYS}
        own = {"self": "a", "tuning": {}, "run_as": None, "tls": tls, "disk": disk}
        content = json.dumps({**plan, **own}).encode()
        self._transport.put(content, f"jobs/{job}/{step}/plan.json")
        self._agent.start(job, step)
        try:
            self._follow(job, step, {str(trial.pk): trial for trial in trials})
        except BaseException:
            self._agent.stop(job, step)
            raise

    def _follow(self, job: str, step: str, trials: Mapping[str, Trial]) -> None:
        """Follow the journal until the round has ended."""
        offset = 0
        while True:
            now = status(self.root, Namespace(job=job, step=step, offset=offset))
            offset = now["offset"]
            for event in now["events"]:
                self._take(job, step, event, trials)
                if event["event"] == "round_done":
                    return
                if event["event"] == "aborted":
                    raise HostError(f"the round was aborted: {event['reason']}")
            if not now["alive"] and now["started"] and not now["events"]:
                raise HostError(
                    f"the agent ended during the round; see {self.root}/jobs/{job}/{step}"
                )
            time.sleep(POLL_S)

    def _take(
        self, job: str, step: str, event: Mapping[str, Any], trials: Mapping[str, Trial]
    ) -> None:
        kind = event["event"]
        if kind == "build_started" and self.rows.job.round == 1:
            self._show_text(f"building {event['commit'][:10]}")
        elif kind == "build_done":
            self.builds.add(self._identify_build(event))
        elif kind == "build_failed":
            self._note(f"{event['commit'][:10]} cannot be built: {_end(event)}")
        elif kind == "trial_started":
            trial = trials[event["trial"]]
            self._show_trial(trial)
        elif kind == "trial_failed":
            self._fail(trials[event["trial"]], event)
        elif kind == "trial_done":
            trial = trials[event["trial"]]
            files = fetch_files(self._transport, f"jobs/{job}/{step}/trials", trial)
            self.results[str(trial.pk)] = read_measured_trial(trial, files)
            self._show_trial(trial)

    def _fail(self, trial: Trial, event: Mapping[str, Any]) -> None:
        self.results[str(trial.pk)] = MeasuredTrial(
            failure=str(event["message"]), code=str(event["code"])
        )
        if event["code"] != "build_failed":
            self._note(f"{trial.variant.commit.short_sha}, {trial.case.label}: {_end(event)}")

    def _show_trial(self, trial: Trial) -> None:
        most = "" if self.rows.until == Until.ROUNDS else "at most "
        self._show_text(f"round {trial.round} of {most}{self.rows.rounds}: {trial.case.label}")

    def _show_text(self, text: str) -> None:
        self._show_progress(len(self.results), self._total, text)

    def _identify_build(self, event: Mapping[str, Any]) -> IdentifiedBuild:
        sha, _, recipe = event["build"].rpartition("-")
        (commit,) = {each.commit.pk for each in self.rows.variants if each.commit.sha == sha}
        digests = event["digests"]
        return IdentifiedBuild(commit, ("", recipe), digests["build"], digests["source"])

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _end(event: Mapping[str, Any]) -> str:
    """Return the message, and the last line of the failed program's output."""
    lines = str(event.get("output") or "").strip().splitlines()
    return ": ".join([str(event["message"]), *lines[-1:]])
