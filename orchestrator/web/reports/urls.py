"""URLs of reports."""

from django.urls import path

from orchestrator.web.reports import views

urlpatterns = [
    path("reports/", views.reports, name="reports"),
    path("reports/new", views.new_report, name="report-new"),
    path("reports/save", views.save, name="report-save"),
    path("reports/<slug:slug>/", views.report, name="report"),
    path("reports/<slug:slug>.<str:ending>", views.report, name="report-export"),
    path("reports/<slug:slug>/edit", views.edit, name="report-edit"),
    path("reports/<slug:slug>/visibility", views.visibility, name="report-visibility"),
    path("reports/<slug:slug>/delete", views.delete, name="report-delete"),
]
