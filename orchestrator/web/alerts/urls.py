"""URLs of alerts."""

from django.urls import path

from orchestrator.web.alerts import views

urlpatterns = [
    path("alerts/", views.alerts, name="alerts"),
    path("alerts/change", views.change_many, name="alerts-change"),
    path("alerts/<uuid:alert_id>/", views.alert, name="alert"),
    path("alerts/<uuid:alert_id>/change", views.change, name="alert-change"),
    path(
        "alerts/<uuid:alert_id>/changes/<uuid:change_id>/confirm",
        views.confirm,
        name="alert-confirm",
    ),
]
