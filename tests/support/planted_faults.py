"""An honest commit and lying ones of one server, measured by the real engine."""

import sys
from dataclasses import dataclass
from pathlib import Path

from orchestrator.accounts.members import Member
from orchestrator.benchmarks.models import Benchmark, Commit, Project
from orchestrator.benchmarks.selectors import load_benchmark
from orchestrator.comparisons.compare import compare_commits
from orchestrator.comparisons.report import ComparisonReport
from orchestrator.histories.histories import load_case_history
from orchestrator.measurements.case_latency import load_case_latency
from orchestrator.runs.models import Run, Trial
from tests.support.engine import Engine
from tests.support.factories import (
    Personas,
    make_definition,
    make_local_host,
    make_project,
    make_run,
    record_again,
)

SERVERS = Path(__file__).parent / "servers"
FILES = ("lying.py", "falling_back.py", "false_answers.py")
PROTO = Path(__file__).parents[2] / "perf/fidelity/server/hello.proto"
#: The server of each commit; a liar has the fault that the case names.
CHARACTERS = ("honest", "liar", "late", "queues", "freezes")
DEFINITION = """
version: 1
title: Lies
subject:
  start: [%s, lying.py, --port, "{port}", --lie, "{lie}", --takes-s, "%g"]
  ready: {body: "Hello, World!"}
load: %s
matrix:
  lie: [%s]
rounds: 1
cooldown_s: 0
"""


def definition(load: str, *lies: str, takes_s: float = 0.0, more: str = "") -> str:
    """`load` is YAML in braces; `more` is at the top level."""
    return DEFINITION % (sys.executable, takes_s, load, ", ".join(lies or ("honest",))) + more


@dataclass(frozen=True, slots=True, kw_only=True)
class Laboratory:
    """One host, and a project with a commit for each character."""

    engine: Engine
    member: Member
    project: Project
    shas: dict[str, str]

    def measure(
        self,
        slug: str,
        source: str,
        *,
        baseline: str = "honest",
        contender: str = "liar",
        timeout_s: float = 180,
    ) -> Run:
        """Run one round of both commits, to its end."""
        make_definition(self.member, self.project, slug=slug, source=source)
        shas = [self.shas[baseline], self.shas[contender]]
        run = make_run(self.member, shas, benchmark=slug, rounds=1)
        return self.engine.finish(run, timeout_s=timeout_s)

    def commit(self, character: str) -> Commit:
        return Commit.objects.get(sha=self.shas[character])

    def benchmark(self, run: Run) -> Benchmark:
        return load_benchmark(self.member, run.definition.benchmark.slug)

    def trial(self, run: Run, character: str, **parameters: str) -> Trial:
        """Return the trial of a commit and a case, after the measurement."""
        trial = Trial.objects.select_related("case", "host").get(
            job__run=run,
            variant__commit__sha=self.shas[character],
            case__parameters__contains=parameters,
        )
        assert trial.state == "measured", (trial.state, trial.message, run.message)
        return trial

    def pair(self, run: Run, **parameters: str) -> tuple[Trial, Trial]:
        """Return the liar's trial, and the honest one of the same case."""
        return self.trial(run, "liar", **parameters), self.trial(run, "honest", **parameters)

    def compare(self, run: Run) -> ComparisonReport:
        return compare_commits(
            self.member,
            benchmark=self.benchmark(run),
            baseline=self.commit("honest"),
            contender=self.commit("liar"),
            run=run,
        )

    def check_left_out(self, run: Run, **parameters: str) -> None:
        """Check that comparisons, histories and charts lack the liar's trial and have the honest
        one."""
        liar, honest = self.pair(run, **parameters)
        assert liar.validity == "invalid"
        # A busy machine may have made it invalid; this test is about the other trials.
        Trial.objects.filter(pk=honest.pk).update(validity="valid")
        record_again()
        benchmark, case, host = self.benchmark(run), liar.case, liar.host
        assert host is not None
        report = self.compare(run)
        (row,) = [each for each in report.cases if each.case.pk == case.pk]
        assert (row.host.pk, row.metrics, row.excluded_blocks) == (host.pk, (), 1)
        history = load_case_history(
            self.member, benchmark=benchmark, metric_key="latency.p50", case=case, host=host
        )
        assert [point.commit for point in history.points] == [self.commit("honest")]
        assert history.excluded == 1
        latency = load_case_latency(
            self.member, benchmark=benchmark, case=case, commit=self.commit("liar")
        )
        assert (latency.trials, latency.excluded, latency.distribution) == ((), 1, None)


def laboratory(engine: Engine, team: Personas, folder: Path) -> Laboratory:
    servers = {name: (SERVERS / name).read_text() for name in FILES}
    servers["hello.proto"] = PROTO.read_text()
    versions = [{**servers, "character": name} for name in CHARACTERS]
    project, shas = make_project(team.alice, folder / "origin", versions)
    make_local_host(team.alice)
    named = dict(zip(CHARACTERS, shas, strict=True))
    return Laboratory(engine=engine, member=team.alice, project=project, shas=named)


def reason(trial: Trial, code: str) -> str:
    """Return the text of this reason; the test fails if the trial does not have it."""
    messages = {each.partition(": ")[0]: each.partition(": ")[2] for each in trial.reasons}
    assert code in messages, trial.reasons
    return messages[code]


def codes(trial: Trial) -> set[str]:
    return {each.partition(":")[0] for each in trial.reasons}
