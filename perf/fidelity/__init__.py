"""Benchmark of readings: the loads, started directly and through Pitwall, and their ratios."""
