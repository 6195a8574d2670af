"""URLs of references."""

from django.urls import path

from orchestrator.web.references import views

urlpatterns = [
    path("published/", views.references, name="references"),
    path("published/import", views.import_file, name="reference-import"),
    path("published/catalogue", views.import_catalogue, name="reference-catalogue"),
    path("published/<uuid:source_id>/", views.reference, name="reference"),
    path("published/<uuid:source_id>/remove", views.remove, name="reference-remove"),
]
