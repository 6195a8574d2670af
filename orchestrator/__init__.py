"""Pitwall's orchestrator: the Django project, one package an idea (see docs/architecture.md)."""
