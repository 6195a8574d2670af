"""What can be measured: benchmarks and their cases."""

from ninja import Schema

from orchestrator.api.schemas.common import CaseOut, case_out
from orchestrator.benchmarks.models import Benchmark


class BenchmarkOut(Schema):
    """`cases` are those that a run was ever asked for; `definition_version` is the newest."""

    benchmark: str
    project: str
    title: str
    definition_version: int | None
    cases: list[CaseOut]


def benchmark_out(benchmark: Benchmark, version: int | None) -> BenchmarkOut:
    return BenchmarkOut(
        benchmark=benchmark.slug,
        project=benchmark.project.slug,
        title=benchmark.title,
        definition_version=version,
        cases=[case_out(case) for case in benchmark.cases.all()],
    )
