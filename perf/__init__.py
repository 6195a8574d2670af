"""Benchmarks of Pitwall itself: `make bench-<name>` runs the package `perf/<name>`."""
