"""The same loads through Pitwall: a run of one trial each, its readings from the database."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.fetching import finish_fetch
from orchestrator.benchmarks.projects import create_project
from orchestrator.benchmarks.services import save_definition
from orchestrator.fleet.services import add_local_host, save_profile
from orchestrator.measurements.readings import load_values
from orchestrator.measurements.selectors import load_artifact
from orchestrator.runs.models import Run, Trial, Trigger
from orchestrator.runs.services import RunRequest, create_run
from orchestrator.runs.states import RUN_ENDED, TrialState
from perf.fidelity.direct import PinnedCpus
from perf.fidelity.extent import Extent
from perf.fidelity.loads import Load
from perf.fidelity.target import Target
from perf.fidelity.tool_output import Figures
from perf.fidelity.wrk_correction import as_wrk_prints
from perf.harness.service_cpu import Services

HOST = "here"
POLL_S = 0.25
#: Time for a run in addition to its load.
GRACE_S = 90.0


#: Seconds between two readings of the services' CPU time, and the readings that a load needs.
SAMPLE_S = 0.5
FEWEST_SAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSample:
    """The CPU seconds of all services so far, at a time in unix seconds."""

    at: float
    cpu_s: float


class PitwallError(Exception):
    """A run did not give a reading; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A trial's values, and other facts about it.

    `as_printed`: the values by the tool's own definition, if Pitwall's is different on purpose.
    `sampler_share`: CPU seconds of the sampler per second of load, None if the agent does not know.
    `services_share`: the same for Pitwall's services, with PostgreSQL and Redis; None if the load
    was too short. `cpu_per_1k`: CPU seconds of the server per 1,000 requests. `foreign_share`: the
    cores that other processes used during the load, None if the host does not know.
    `program`: the SHA-256 of the tool.
    """

    figures: Figures
    as_printed: Figures | None
    sampler_share: float | None
    services_share: float | None
    cpu_per_1k: float | None
    foreign_share: float | None
    validity: str
    reasons: tuple[str, ...]
    pinned: PinnedCpus
    program: str


class Pitwall:
    """This machine as a host, and a benchmark for each load."""

    def __init__(self, member: Member, target: Target, extent: Extent, services: Services) -> None:
        self._member = member
        self._services = services
        self._target = target
        self._extent = extent
        self._project = create_project(
            member=member, slug="faithful", name="Faithful", repository_url=str(target.repository)
        )
        finish_fetch(self._project)
        profile = save_profile(member=member, slug="here", name="This machine")
        add_local_host(member=member, name=HOST, profile=profile, python=sys.executable)

    def add(self, load: Load) -> None:
        self.save(_slug(load), yaml.safe_dump(build_definition(load, self._target, self._extent)))

    def save(self, slug: str, source: str) -> None:
        """Add a benchmark with this definition."""
        save_definition(member=self._member, project=self._project, slug=slug, source=source)

    def measure(self, load: Load) -> Reading:
        """Measure one run of one trial, from its request to its readings."""
        run = self._create_run(_slug(load), rounds=1)
        loading_s = self._extent.warmup_s + self._extent.duration_s
        # Do not poll the run during the load: there may be no CPU to spare.
        samples = self._sample_services(loading_s)
        _wait_for_end(run, GRACE_S)
        return self._reading(load, Trial.objects.get(job__run=run), samples)

    def measure_cases(self, slug: str, source: str, *, rounds: int, load_s: float) -> list[Trial]:
        """Measure all cases of this definition in one run; `load_s`: the time of all its loads."""
        self.save(slug, source)
        run = self._create_run(slug, rounds=rounds)
        # Each trial adds its start and end.
        _wait_for_end(run, 2 * load_s + GRACE_S)
        return list(Trial.objects.filter(job__run=run).select_related("case", "job__run"))

    def read_file(self, trial: Trial, name: str) -> str:
        """Return the text of a file of a trial."""
        return load_artifact(self._member, trial.pk, name).decode()

    def _create_run(self, slug: str, *, rounds: int) -> Run:
        # Like a golden run, the only kind of run with a single commit.
        return create_run(
            member=self._member,
            request=RunRequest(
                benchmark=slug,
                baseline=self._target.sha,
                contenders=(),
                hosts=(HOST,),
                rounds=rounds,
                wait_for_quiet=False,
            ),
            trigger=Trigger.GOLDEN,
        )

    def _sample_services(self, seconds: float) -> list[CpuSample]:
        end = time.monotonic() + seconds
        samples = []
        while time.monotonic() < end:
            samples.append(CpuSample(at=time.time(), cpu_s=sum(self._services.cpu_s().values())))
            time.sleep(SAMPLE_S)
        return samples

    def _reading(self, load: Load, trial: Trial, samples: Sequence[CpuSample]) -> Reading:
        if trial.state != TrialState.MEASURED:
            run = trial.job.run
            raise PitwallError(
                f"the trial of {load.title} is {trial.state}: {trial.message or run.message}"
            )
        values = load_values([trial.pk])[trial.pk]
        result = self._file(trial, "result.json")
        loaded = result["loads"][0]
        return Reading(
            figures=_read_figures(load, trial, values),
            as_printed=self._as_printed(load, trial, values),
            sampler_share=_sampler_share(loaded),
            services_share=_compute_services_share(loaded, samples),
            cpu_per_1k=values.get("cpu.seconds_per_1k"),
            foreign_share=_find_foreign_share(loaded),
            validity=trial.validity,
            reasons=tuple(reason.partition(":")[0] for reason in trial.reasons),
            pinned=_read_pinned(result),
            program=result["tool"]["sha256"],
        )

    def _as_printed(self, load: Load, trial: Trial, values: dict[str, float]) -> Figures | None:
        if load.tool != "wrk":
            return None
        report, rows = self._file(trial, "tool.json"), self._file(trial, "rows.json")
        return as_wrk_prints(values["requests.rate"], report, rows)

    def _file(self, trial: Trial, name: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.read_file(trial, name))
        return content


def _wait_for_end(run: Run, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    states = Run.objects.filter(pk=run.pk).values_list("state", flat=True)
    while (state := states.get()) not in RUN_ENDED:
        if time.monotonic() > deadline:
            raise PitwallError(f"the run of {run.definition.benchmark.slug} is still {state}")
        time.sleep(POLL_S)


def _compute_services_share(loaded: dict[str, Any], samples: Sequence[CpuSample]) -> float | None:
    """Return CPU seconds of the services per second between the first and last sample in a load."""
    within = [
        each for each in samples if loaded["load_started_at"] <= each.at <= loaded["load_ended_at"]
    ]
    if len(within) < FEWEST_SAMPLES:
        return None
    return (within[-1].cpu_s - within[0].cpu_s) / (within[-1].at - within[0].at)


def _find_foreign_share(loaded: dict[str, Any]) -> float | None:
    shares = [facts.get("foreign_share") for facts in loaded["interference"].values()]
    known = [share for share in shares if share is not None]
    return max(known) if known else None


def build_definition(load: Load, target: Target, extent: Extent) -> dict[str, Any]:
    """Return a definition with one CPU each for server and tool, so that both ways pin alike."""
    return {
        "version": 1,
        "title": load.title,
        "subject": {"start": target.argv("{port}"), "ready": {"path": "/hello"}},
        "load": {
            "tool": load.tool,
            **load.definition,
            "warmup_s": extent.warmup_s,
            "duration_s": extent.duration_s,
        },
        "limits": {"target": {"cpus": 1}, "generator": {"cpus": 1}},
        "rounds": 1,
        "cooldown_s": 0,
    }


def _slug(load: Load) -> str:
    return load.key.replace("_", "-")


def _read_figures(load: Load, trial: Trial, values: dict[str, float]) -> Figures:
    keys = ("requests.rate", "latency.p50", "latency.p99")
    missing = [key for key in keys if key not in values]
    if missing:
        raise PitwallError(
            f"the trial of {load.title} has no {missing[0]}; {trial.validity}: {trial.reasons}"
        )
    return Figures(rate=values[keys[0]], p50=values[keys[1]], p99=values[keys[2]])


def _sampler_share(loaded: dict[str, Any]) -> float | None:
    used: float | None = loaded["usage"]["sampler_cpu_s"]
    return None if used is None else used / (loaded["load_ended_at"] - loaded["load_started_at"])


def _read_pinned(result: dict[str, Any]) -> PinnedCpus:
    limits = result["limits"]
    return PinnedCpus(server=tuple(limits["server"]["cpus"]), tool=tuple(limits["tool"]["cpus"]))
