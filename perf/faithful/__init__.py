"""The parts of `perf/fidelity.py`: the loads, by hand and through Pitwall, and their ratios."""
