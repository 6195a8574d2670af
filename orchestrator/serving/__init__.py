"""Connections of the web server: which of them get a thread, and for how long."""
