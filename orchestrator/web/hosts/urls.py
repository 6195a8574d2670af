"""URLs of hosts."""

from django.urls import path

from orchestrator.web.hosts import check_views, load_tool_views, settings_views, views

urlpatterns = [
    path("load-tools/", load_tool_views.load_tools, name="load-tools"),
    path("hosts/", views.hosts, name="hosts"),
    path("hosts/new", views.new_host, name="host-new"),
    path("hosts/<uuid:host_id>/", views.host, name="host"),
    path("hosts/<uuid:host_id>/checks", check_views.checks, name="host-checks"),
    path(
        "hosts/<uuid:host_id>/checks/host-key", check_views.accept_host_key, name="host-key-accept"
    ),
    path("hosts/<uuid:host_id>/setup.sh", check_views.setup_script, name="host-setup-script"),
    path("hosts/<uuid:host_id>/certificate", check_views.certificate, name="host-certificate"),
    path("hosts/<uuid:host_id>/ssh", check_views.ssh_settings, name="host-ssh"),
    path("hosts/<uuid:host_id>/remove", views.remove, name="host-remove"),
    path("hosts/<uuid:host_id>/settings", settings_views.settings, name="host-settings"),
    path("hosts/<uuid:host_id>/golden", settings_views.golden, name="host-golden"),
    path(
        "hosts/<uuid:host_id>/golden/remove",
        settings_views.golden_remove,
        name="host-golden-remove",
    ),
    path(
        "hosts/<uuid:host_id>/golden/reset",
        settings_views.golden_reset,
        name="host-golden-reset",
    ),
    path("hosts/<uuid:host_id>/calibrate", settings_views.calibrate, name="host-calibrate"),
    path("hosts/<uuid:host_id>/maintenance", settings_views.maintenance, name="host-maintenance"),
    path("hosts/<uuid:host_id>/reservation", settings_views.reserve, name="host-reserve"),
    path(
        "hosts/<uuid:host_id>/reservation/end",
        settings_views.reservation_end,
        name="host-reservation-end",
    ),
    path("hosts/<uuid:host_id>/release", settings_views.release, name="host-release"),
    path("hosts/<uuid:host_id>/retire", settings_views.retire, name="host-retire"),
    path("profiles/", views.profiles, name="profiles"),
    path("profiles/<str:slug>/delete", views.delete_hardware_profile, name="profile-delete"),
]
