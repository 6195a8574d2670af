"""Helpers for PostgreSQL and Redis that the applications share. It has no tables."""
