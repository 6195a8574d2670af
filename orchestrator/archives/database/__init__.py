"""Backups of the whole database over the programs of PostgreSQL."""
