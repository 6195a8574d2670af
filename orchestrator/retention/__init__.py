"""Retention settings, pins, and the removal of old data."""
