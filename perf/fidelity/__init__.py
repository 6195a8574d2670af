"""Benchmark of readings: the ratios between loads through Pitwall and loads started directly."""
