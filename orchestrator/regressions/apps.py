from django.apps import AppConfig


class RegressionsConfig(AppConfig):
    name = "orchestrator.regressions"
