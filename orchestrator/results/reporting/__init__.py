"""Leaderboards and pivots: what was measured, laid out as a report says."""
