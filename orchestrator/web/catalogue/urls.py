"""URLs of the catalogue."""

from django.urls import path

from orchestrator.web.catalogue import views

urlpatterns = [
    path("catalogue/", views.catalogue, name="catalogue"),
    path("catalogue/<slug:slug>/", views.suite, name="catalogue-suite"),
    path("catalogue/<slug:slug>/run", views.run_suite, name="catalogue-run"),
]
