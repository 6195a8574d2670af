from django.apps import AppConfig


class ForgesConfig(AppConfig):
    name = "orchestrator.forges"
