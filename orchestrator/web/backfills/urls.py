"""URLs of backfills."""

from django.urls import path

from orchestrator.web.backfills import views

urlpatterns = [
    path("backfills/", views.backfills, name="backfills"),
    path("backfills/new", views.new_backfill, name="backfill-new"),
    path("backfills/<uuid:backfill_id>/", views.backfill, name="backfill"),
    path("backfills/<uuid:backfill_id>/cancel", views.cancel, name="backfill-cancel"),
]
