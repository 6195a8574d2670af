"""What all benchmarks share: servers, hosts, environments, CPU time, the report."""
