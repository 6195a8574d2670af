"""URLs of comparisons."""

from django.urls import path

from orchestrator.web.comparisons import views

urlpatterns = [
    path("compare/", views.compare, name="compare"),
    path("compare/case", views.compare_case, name="compare-case"),
    path("compare/choose", views.choose, name="compare-choose"),
]
