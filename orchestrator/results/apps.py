from django.apps import AppConfig


class ResultsConfig(AppConfig):
    name = "orchestrator.results"
