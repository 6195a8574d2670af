"""URLs of references."""

from django.urls import path

from orchestrator.web.references import views

urlpatterns = [
    path("references/", views.references, name="references"),
    path("references/import", views.import_file, name="reference-import"),
    path("references/catalogue", views.import_catalogue, name="reference-catalogue"),
    path("references/<uuid:source_id>/", views.reference, name="reference"),
    path("references/<uuid:source_id>/remove", views.remove, name="reference-remove"),
]
