"""URLs of runs."""

from django.urls import path

from orchestrator.web.runs import form_views, idle_check_views, queue_views, views

urlpatterns = [
    path("runs/", views.runs, name="runs"),
    path("queue/", queue_views.show_queue, name="queue"),
    path("runs/new", form_views.new_run, name="run-new"),
    path("runs/preview", form_views.preview, name="run-preview"),
    path("runs/idle-checks", idle_check_views.show_idle_checks, name="run-idle-checks"),
    path("runs/refs", form_views.refs, name="run-refs"),
    path("runs/<uuid:run_id>/rerun", form_views.run_again, name="run-rerun"),
    path("runs/<uuid:run_id>/", views.run, name="run"),
    path("runs/<uuid:run_id>/progress", views.progress, name="run-progress"),
    path("runs/<uuid:run_id>/trials", views.trials, name="run-trials"),
    path("runs/<uuid:run_id>/pin", views.add_pin, name="run-pin"),
    path("runs/<uuid:run_id>/cancel", views.cancel, name="run-cancel"),
    path("runs/<uuid:run_id>/measure-now", views.measure_now, name="run-measure-now"),
    path("runs/<uuid:run_id>/cancel-part", views.cancel_part, name="run-cancel-part"),
    path("builds/<int:build_id>/log", views.build_log, name="build-log"),
]
