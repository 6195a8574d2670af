"""URLs of schedules."""

from django.urls import path

from orchestrator.web.schedules import views

urlpatterns = [
    path("schedules/", views.schedules, name="schedules"),
    path("schedules/<uuid:schedule_id>/edit", views.edit_schedule, name="schedule-edit"),
    path("schedules/<uuid:schedule_id>/enable", views.enable, name="schedule-enable"),
    path("schedules/<uuid:schedule_id>/delete", views.delete, name="schedule-delete"),
]
