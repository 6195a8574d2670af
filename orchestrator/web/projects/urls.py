"""URLs of projects."""

from django.urls import path

from orchestrator.web.projects import deletion_views, repository_views, secret_views, views

urlpatterns = [
    path("projects/new", views.new_project, name="project-new"),
    path("projects/<slug:slug>/", views.project, name="project"),
    path("projects/<slug:slug>/delete", deletion_views.delete, name="project-delete"),
    path("projects/<slug:slug>/fetch", repository_views.fetch_state, name="project-fetch"),
    path("projects/<slug:slug>/fetch/now", repository_views.fetch, name="project-fetch-now"),
    path(
        "projects/<slug:slug>/fetch/clone",
        repository_views.clone_again_now,
        name="project-reclone",
    ),
    path("projects/<slug:slug>/repository", repository_views.repository, name="project-repository"),
    path("projects/<slug:slug>/changes", views.change_rules, name="project-changes"),
    path("projects/<slug:slug>/access", repository_views.repository_access, name="project-access"),
    path(
        "projects/<slug:slug>/access/key", repository_views.generate_key, name="project-access-key"
    ),
    path(
        "projects/<slug:slug>/access/host-key",
        repository_views.accept_host_key,
        name="project-access-host-key",
    ),
    path(
        "projects/<slug:slug>/access/host-key/reject",
        repository_views.reject_host_key,
        name="project-access-host-key-reject",
    ),
    path(
        "projects/<slug:slug>/access/host-key/forget",
        repository_views.forget_host_key,
        name="project-access-host-key-forget",
    ),
    path(
        "projects/<slug:slug>/access/remove",
        repository_views.remove_access,
        name="project-access-remove",
    ),
    path("projects/<slug:slug>/secrets/", secret_views.secrets, name="project-secrets"),
    path("projects/<slug:slug>/secrets/<str:name>/", secret_views.secret, name="project-secret"),
    path(
        "projects/<slug:slug>/secrets/<str:name>/delete",
        secret_views.delete_secret,
        name="project-secret-delete",
    ),
    path("projects/<slug:slug>/pins", views.pin, name="project-pin"),
    path(
        "projects/<slug:slug>/pins/<int:pin_id>/remove", views.remove_pin, name="project-pin-remove"
    ),
    path("projects/<slug:slug>/import", views.import_benchmark, name="project-import"),
]
