"""URLs of histories."""

from django.urls import path

from orchestrator.web.history import annotation_views, views

urlpatterns = [
    path("history/", views.history, name="history"),
    path("history/<int:series_id>/data", views.data, name="history-data"),
    path("history/<int:series_id>/commits/<str:sha>", views.commit, name="history-commit"),
    path("history/<int:series_id>/points/<str:sha>", views.point, name="history-point"),
    path(
        "history/<int:series_id>/points/<str:sha>/baseline",
        views.add_baseline,
        name="history-baseline",
    ),
    path(
        "history/<int:series_id>/points/<str:sha>/notes",
        annotation_views.write,
        name="annotation-new",
    ),
    path(
        "history/annotations/<uuid:annotation_id>/edit",
        annotation_views.edit,
        name="annotation-edit",
    ),
    path(
        "history/annotations/<uuid:annotation_id>/delete",
        annotation_views.delete,
        name="annotation-delete",
    ),
    path(
        "history/baselines/<uuid:baseline_id>/remove",
        views.delete_baseline,
        name="history-baseline-remove",
    ),
    path("history/changes/<uuid:change_id>/dismiss", views.dismiss_change, name="history-dismiss"),
    path("history/changes/<uuid:change_id>/confirm", views.confirm_change, name="history-confirm"),
]
