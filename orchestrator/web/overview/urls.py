"""URLs of the first page."""

from django.urls import path

from orchestrator.web.overview import views

urlpatterns = [
    path("favicon.ico", views.favicon, name="favicon"),
    path("", views.overview, name="overview"),
    path("measure-this-machine", views.measure_here, name="measure-here"),
]
