"""Benchmark of change detection: real and generated series, detectors, scores, comparisons."""
