"""What a run can be made of: benchmarks and hosts."""

from ninja import Router

from orchestrator.api.auth import CallerRequest
from orchestrator.api.schemas.catalogue import BenchmarkOut, HostOut, benchmark_out, host_out
from orchestrator.benchmarks.selectors import benchmarks_with_versions
from orchestrator.fleet.selectors import hosts_of

router = Router()


@router.get(
    "/benchmarks", response=list[BenchmarkOut], summary="List benchmarks", tags=["benchmarks"]
)
def list_benchmarks(request: CallerRequest) -> list[BenchmarkOut]:
    benchmarks = benchmarks_with_versions(request.auth.member)
    return [benchmark_out(benchmark, benchmark.version) for benchmark in benchmarks]


@router.get("/hosts", response=list[HostOut], summary="List hosts", tags=["hosts"])
def list_hosts(request: CallerRequest) -> list[HostOut]:
    return [host_out(host) for host in hosts_of(request.auth.member)]
