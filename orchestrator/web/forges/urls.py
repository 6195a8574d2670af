"""URLs of forges."""

from django.urls import path

from orchestrator.web.forges import views

urlpatterns = [
    path("projects/<slug:slug>/forge", views.forge, name="project-forge"),
    path("projects/<slug:slug>/forge/secret", views.new_secret, name="project-forge-secret"),
    path("projects/<slug:slug>/forge/remove", views.remove, name="project-forge-remove"),
    path("forge-requests/<uuid:request_id>/answer", views.answer, name="forge-answer"),
    path("hooks/<uuid:connection_id>", views.hook, name="forge-hook"),
]
