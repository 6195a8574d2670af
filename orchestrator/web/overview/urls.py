"""URLs of the first page."""

from django.urls import path

from orchestrator.web.overview import views

urlpatterns = [
    path("favicon.ico", views.favicon, name="favicon"),
    path("", views.overview, name="overview"),
]
