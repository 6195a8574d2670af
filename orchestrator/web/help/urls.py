"""URLs of the documentation."""

from django.urls import path

from orchestrator.web.help import views

urlpatterns = [
    path("docs/", views.document, name="documents"),
    path("docs/<path:name>", views.document, name="document"),
]
