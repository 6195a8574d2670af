from django.apps import AppConfig


class RetentionConfig(AppConfig):
    name = "orchestrator.retention"
