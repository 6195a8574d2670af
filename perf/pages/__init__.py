"""Lighthouse against gunicorn and a realistically filled database."""
