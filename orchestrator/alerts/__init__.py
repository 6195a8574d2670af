"""Alerts about regressions, and the channels that report them."""
