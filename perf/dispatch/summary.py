"""The summary of the results, and the targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from perf.dispatch.latency import Latency
from perf.dispatch.matrix import MatrixTimes
from perf.dispatch.throughput import Score
from perf.dispatch.workload import Form, Work
from perf.harness.report import Requirement, render_table

PITWALL = "Pitwall"
#: The first of the alternatives' two forms is realistic: jobs arrive one by one.
WANTED: dict[str, Requirement | None] = {
    "jobs_a_minute_to_ansible_one_by_one": Requirement(relation=">", limit=5),
    "jobs_a_minute_to_ansible_in_batches": None,
    "copy_cpu_to_pyinfra_one_by_one": Requirement(relation="<=", limit=1),
    "copy_cpu_to_pyinfra_in_batches": Requirement(relation="<=", limit=1),
    "first_process_to_ansible_alone": None,
    "matrix_to_shell_loop": Requirement(relation="<=", limit=1.05),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """An alternative in one of its forms, or Pitwall, whose jobs always arrive one by one."""

    name: str
    form: Form

    def __str__(self) -> str:
        return f"{self.name}, {self.form}"


@dataclass(slots=True, kw_only=True)
class Measurements:
    """All measurements, one entry per round."""

    scores: dict[tuple[Work, Candidate], list[Score]] = field(default_factory=dict)
    services: dict[Work, list[dict[str, float]]] = field(default_factory=dict)
    idle: dict[str, float] = field(default_factory=dict)
    latencies: list[Latency] = field(default_factory=list)
    ansible_alone_s: list[float] = field(default_factory=list)
    matrices: list[MatrixTimes] = field(default_factory=list)

    def add(self, work: Work, candidate: Candidate, score: Score) -> None:
        self.scores.setdefault((work, candidate), []).append(score)

    def rate(self, work: Work, candidate: Candidate) -> float:
        """Return jobs per minute, the median of the rounds."""
        return median(score.jobs_per_minute for score in self.scores[work, candidate])

    def cpu_ms(self, work: Work, candidate: Candidate) -> float:
        """Return the controller's CPU milliseconds per job, the median of the rounds."""
        return median(score.cpu_ms_per_job for score in self.scores[work, candidate])


def get_measured(data: Measurements) -> dict[str, float]:
    """Return the measured ratios with the keys of WANTED."""
    ours = Candidate(PITWALL, Form.EACH)
    ratios = {}
    for form, words in ((Form.EACH, "one_by_one"), (Form.BATCH, "in_batches")):
        ansible, pyinfra = Candidate("ansible", form), Candidate("pyinfra", form)
        rate = data.rate(Work.EMPTY, ours) / data.rate(Work.EMPTY, ansible)
        ratios[f"jobs_a_minute_to_ansible_{words}"] = rate
        cpu = data.cpu_ms(Work.COPY, ours) / data.cpu_ms(Work.COPY, pyinfra)
        ratios[f"copy_cpu_to_pyinfra_{words}"] = cpu
    first = median(each.to_trial_s for each in data.latencies)
    ratios["first_process_to_ansible_alone"] = first / median(data.ansible_alone_s)
    pairs = [each.pitwall_s / each.loop_s for each in data.matrices]
    return {**ratios, "matrix_to_shell_loop": median(pairs)}


def format_text(data: Measurements) -> str:
    """Return the tables for people."""
    return "\n\n".join([_format_jobs(data, work) for work in Work] + [_format_rest(data)])


def list_details(data: Measurements) -> dict[str, Any]:
    """Return the values behind the ratios, for the file of results."""
    return {
        "jobs": {
            f"{work}: {candidate}": {
                "jobs_a_minute": [round(score.jobs_per_minute, 1) for score in scores],
                "cpu_ms_a_job": [round(score.cpu_ms_per_job, 2) for score in scores],
            }
            for (work, candidate), scores in data.scores.items()
        },
        "services_cpu_ms_a_job": {
            str(work): {name: round(ms, 2) for name, ms in _compute_services_ms(data, work).items()}
            for work in data.services
        },
        "idle_cpu_s_a_second": data.idle,
        "post_to_supervisor_s": [round(each.to_supervisor_s, 3) for each in data.latencies],
        "post_to_trial_s": [round(each.to_trial_s, 3) for each in data.latencies],
        "ansible_alone_s": [round(each, 3) for each in data.ansible_alone_s],
        "matrix": [
            {
                "trials": each.trials,
                "pitwall_s": round(each.pitwall_s, 2),
                "shell_loop_s": round(each.loop_s, 2),
            }
            for each in data.matrices
        ],
    }


def _format_jobs(data: Measurements, work: Work) -> str:
    ours = Candidate(PITWALL, Form.EACH)
    candidates = [candidate for kind, candidate in data.scores if kind == work]
    candidates.sort(key=lambda each: data.rate(work, each))
    rows = [
        (
            str(each),
            f"{data.rate(work, each):.0f}",
            f"{data.rate(work, ours) / data.rate(work, each):.2f}",
            f"{data.cpu_ms(work, each):.1f}",
            f"{data.cpu_ms(work, ours) / data.cpu_ms(work, each):.2f}",
        )
        for each in candidates
    ]
    title = {Work.EMPTY: "An empty job", Work.COPY: "A new file of 1 MB and a command"}[work]
    return render_table((title, "jobs/min", "Pitwall is ×", "CPU ms/job", "Pitwall is ×"), rows)


def _format_rest(data: Measurements) -> str:
    rows = [
        (f"CPU ms a job of {name}, {work} job", _format_number(ms, 1))
        for work in data.services
        for name, ms in _compute_services_ms(data, work).items()
    ]
    rows += [
        (f"CPU ms a second of {name}, nothing to do", _format_number(1000 * used, 1))
        for name, used in data.idle.items()
    ]
    rows += [
        ("POST /runs to the supervisor, s", _spread([x.to_supervisor_s for x in data.latencies])),
        ("POST /runs to the first trial, s", _spread([x.to_trial_s for x in data.latencies])),
        ("ansible, one empty job alone, s", _spread(data.ansible_alone_s)),
    ]
    for each in data.matrices:
        rows.append((f"{each.trials} trials with Pitwall, s", _format_number(each.pitwall_s, 2)))
        rows.append((f"{each.trials} trials in a shell loop, s", _format_number(each.loop_s, 2)))
    return render_table(("Pitwall", ""), rows)


def _compute_services_ms(data: Measurements, work: Work) -> Mapping[str, float]:
    """Return CPU milliseconds per job of each service, the median of the rounds."""
    rounds = data.services[work]
    return {name: 1000 * median(each[name] for each in rounds) for name in rounds[0]}


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _format_number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}"
