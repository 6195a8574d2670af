"""Shared code of the benchmarks: servers, hosts, environments, CPU time, the report."""
