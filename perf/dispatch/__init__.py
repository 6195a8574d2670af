"""Benchmark of dispatch: what a user would use instead, the side of Pitwall, the matrix."""
