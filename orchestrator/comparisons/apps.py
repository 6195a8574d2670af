from django.apps import AppConfig


class ComparisonsConfig(AppConfig):
    name = "orchestrator.comparisons"
