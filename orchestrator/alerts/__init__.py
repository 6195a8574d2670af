"""Regressions that somebody should look at."""
