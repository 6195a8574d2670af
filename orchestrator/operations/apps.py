import gc

from django.apps import AppConfig
from django.db.backends.signals import connection_created

from orchestrator.operations.database_away import drop_last_error


class OperationsConfig(AppConfig):
    name = "orchestrator.operations"

    def ready(self) -> None:
        connection_created.connect(drop_last_error)
        gc.freeze()
        gc.enable()
