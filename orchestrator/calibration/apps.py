from django.apps import AppConfig


class CalibrationConfig(AppConfig):
    name = "orchestrator.calibration"
