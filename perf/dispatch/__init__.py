"""Benchmark of dispatch: alternatives that a user might choose, Pitwall, and a matrix."""
