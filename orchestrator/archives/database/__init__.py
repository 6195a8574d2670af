"""Backups of the whole database with PostgreSQL's programs."""
