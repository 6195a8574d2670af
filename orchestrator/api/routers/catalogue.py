"""What can be measured."""

from ninja import Router

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.catalogue import BenchmarkOut, benchmark_out
from orchestrator.benchmarks.selectors import benchmarks_with_versions

router = Router()


@router.get(
    "/benchmarks", response=list[BenchmarkOut], summary="List benchmarks", tags=["benchmarks"]
)
def list_benchmarks(request: CallerRequest) -> list[BenchmarkOut]:
    benchmarks = benchmarks_with_versions(request.auth.member)
    return [benchmark_out(benchmark, benchmark.version) for benchmark in benchmarks]
