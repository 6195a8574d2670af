"""URLs of the team's settings."""

from django.urls import path

from orchestrator.web.team import deletion_views, member_views, views

urlpatterns = [
    path("settings/", views.settings, name="settings"),
    path("settings/members/", member_views.members, name="members"),
    path("settings/members/invite", member_views.invite, name="invitation-new"),
    path("settings/members/<str:username>/role", member_views.role, name="member-role"),
    path("settings/members/<str:username>/remove", member_views.remove, name="member-remove"),
    path(
        "settings/invitations/<uuid:invitation_id>/withdraw",
        member_views.withdraw,
        name="invitation-withdraw",
    ),
    path("settings/deleted/", deletion_views.deleted, name="deleted"),
    path(
        "settings/deleted/projects/<int:project_id>/restore",
        deletion_views.restore_deleted_project,
        name="project-restore",
    ),
    path(
        "settings/deleted/benchmarks/<int:benchmark_id>/restore",
        deletion_views.restore_deleted_benchmark,
        name="benchmark-restore",
    ),
    path("settings/audit/", views.audit, name="audit"),
    path("settings/audit.<str:ending>", views.export_audit, name="audit-export"),
    path("invitations/<str:secret>", member_views.invitation, name="invitation"),
    path("team/switch", views.switch, name="team-switch"),
    path("team/leave", views.leave, name="team-leave"),
    path("settings/quotas", views.quotas, name="settings-quotas"),
    path("settings/tokens/<uuid:token_id>/revoke", views.revoke, name="token-revoke"),
]
