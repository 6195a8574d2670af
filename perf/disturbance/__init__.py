"""Benchmark of thresholds: how much other processes move the results of equal servers."""
