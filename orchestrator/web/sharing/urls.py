"""URLs of sharing."""

from django.urls import path

from orchestrator.web.sharing import views

urlpatterns = [
    path("projects/<slug:slug>/public", views.public, name="project-public"),
    path("projects/<slug:slug>/badges", views.badges, name="project-badges"),
    path("badge/<slug:project>/<slug:slug>/value.svg", views.badge_value, name="badge-value"),
    path("badge/<slug:project>/<slug:slug>/verdict.svg", views.badge_verdict, name="badge-verdict"),
    path("embed/<int:series_id>", views.embed, name="embed"),
    path("sharing/", views.sharing, name="sharing"),
    path("sharing/new", views.new_link, name="share-new"),
    path("sharing/<uuid:link_id>/revoke", views.revoke, name="share-revoke"),
]
