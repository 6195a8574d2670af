"""Benchmark of API requests that read and start runs."""
