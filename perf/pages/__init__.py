"""Lighthouse against gunicorn and a database that is filled as a team would have filled it."""
