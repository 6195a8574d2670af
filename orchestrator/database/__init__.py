"""Helpers for PostgreSQL that the applications share. It has no tables."""
