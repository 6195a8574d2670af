"""URLs of trials."""

from django.urls import path

from orchestrator.web.trials import views

urlpatterns = [
    path("trials/<uuid:trial_id>/", views.trial, name="trial"),
    path("trials/<uuid:trial_id>/files/<str:name>", views.artifact, name="trial-artifact"),
    path("trials/<uuid:trial_id>/histogram/<str:kind>", views.histogram, name="trial-histogram"),
    path("validity/", views.validity, name="validity"),
]
