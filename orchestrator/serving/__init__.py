"""Connections of the web server: who may hold a thread, and for how long."""
