"""URLs of imports."""

from django.urls import path

from orchestrator.web.imports import views

urlpatterns = [
    path("imports/", views.imports, name="imports"),
]
