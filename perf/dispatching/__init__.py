"""The parts of `perf/dispatch.py`: hosts, rivals, Pitwall's side, the matrix."""
