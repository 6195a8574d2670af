"""The pages' addresses."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from orchestrator.web.pages import (
    benchmarks,
    builds,
    compare,
    history,
    host_care,
    hosts,
    new_run,
    overview,
    profiles,
    projects,
    runs,
    schedules,
    team,
    trials,
)

login = LoginView.as_view(template_name="accounts/login.html", redirect_authenticated_user=True)

urlpatterns = [
    path("login", login, name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("favicon.ico", overview.favicon, name="favicon"),
    path("", overview.overview, name="overview"),
    path("runs/", runs.runs, name="runs"),
    path("runs/new", new_run.new_run, name="run-new"),
    path("runs/preview", new_run.preview, name="run-preview"),
    path("runs/<uuid:run_id>/", runs.run, name="run"),
    path("runs/<uuid:run_id>/progress", runs.progress, name="run-progress"),
    path("runs/<uuid:run_id>/trials", runs.trials, name="run-trials"),
    path("runs/<uuid:run_id>/cancel", runs.cancel, name="run-cancel"),
    path("builds/<int:build_id>/log", builds.build_log, name="build-log"),
    path("trials/<uuid:trial_id>/", trials.trial, name="trial"),
    path("trials/<uuid:trial_id>/files/<str:name>", trials.artifact, name="trial-artifact"),
    path("compare/", compare.compare, name="compare"),
    path("history/", history.history, name="history"),
    path("hosts/", hosts.hosts, name="hosts"),
    path("hosts/new", hosts.new_host, name="host-new"),
    path("hosts/<uuid:host_id>/", hosts.host, name="host"),
    path("hosts/<uuid:host_id>/confirm", hosts.confirm, name="host-confirm"),
    path("hosts/<uuid:host_id>/remove", hosts.remove, name="host-remove"),
    path("hosts/<uuid:host_id>/care", host_care.care, name="host-care"),
    path("hosts/<uuid:host_id>/golden", host_care.golden, name="host-golden"),
    path("hosts/<uuid:host_id>/golden/remove", host_care.golden_remove, name="host-golden-remove"),
    path("hosts/<uuid:host_id>/golden/forget", host_care.golden_forget, name="host-golden-forget"),
    path("hosts/<uuid:host_id>/maintenance", host_care.maintenance, name="host-maintenance"),
    path("hosts/<uuid:host_id>/release", host_care.release, name="host-release"),
    path("hosts/<uuid:host_id>/retire", host_care.retire, name="host-retire"),
    path("profiles/", profiles.profiles, name="profiles"),
    path("benchmarks/", benchmarks.benchmarks, name="benchmarks"),
    path("benchmarks/new", benchmarks.new_benchmark, name="benchmark-new"),
    path("benchmarks/<slug:project>/<slug:slug>/", benchmarks.benchmark, name="benchmark"),
    path("projects/new", projects.new_project, name="project-new"),
    path("schedules/", schedules.schedules, name="schedules"),
    path("schedules/<uuid:schedule_id>/enable", schedules.enable, name="schedule-enable"),
    path("schedules/<uuid:schedule_id>/delete", schedules.delete, name="schedule-delete"),
    path("settings/", team.settings, name="settings"),
    path("settings/tokens/<uuid:token_id>/revoke", team.revoke, name="token-revoke"),
]
