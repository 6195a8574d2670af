"""URLs of imports."""

from django.urls import path

from orchestrator.web.imports import views

urlpatterns = [
    path("imports/", views.imports, name="imports"),
    path("imports/new", views.new_history, name="import-new"),
    path("imports/<uuid:import_id>/", views.result_import, name="import"),
    path("imports/<uuid:import_id>/start", views.start, name="import-start"),
    path("imports/<uuid:import_id>/discard", views.discard, name="import-discard"),
]
