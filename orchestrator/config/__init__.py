"""Configuration of the Django project. Importing it also makes the Celery application known."""

from orchestrator.config.celery import app as celery_app

__all__ = ["celery_app"]
