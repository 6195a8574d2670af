"""URLs of benchmarks."""

from django.urls import path

from orchestrator.web.benchmarks import views

urlpatterns = [
    path("benchmarks/", views.benchmarks, name="benchmarks"),
    path("benchmarks/new", views.new_benchmark, name="benchmark-new"),
    path("benchmarks/check", views.check, name="benchmark-check"),
    path("benchmarks/<slug:project>/<slug:slug>/", views.benchmark, name="benchmark"),
    path(
        "benchmarks/<slug:project>/<slug:slug>/cases/<slug:case>/visibility",
        views.case_visibility,
        name="case-visibility",
    ),
    path("benchmarks/<slug:project>/<slug:slug>/delete", views.delete, name="benchmark-delete"),
    path("benchmarks/<slug:project>/<slug:slug>/diff", views.diff, name="benchmark-diff"),
    path(
        "benchmarks/<slug:project>/<slug:slug>/repository-definition",
        views.store_repository_definition,
        name="benchmark-repository-definition",
    ),
]
