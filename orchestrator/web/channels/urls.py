"""URLs of channels."""

from django.urls import path

from orchestrator.web.channels import views

urlpatterns = [
    path("settings/channels/", views.channels, name="channels"),
    path("settings/channels/<uuid:channel_id>/", views.channel, name="channel"),
    path("settings/channels/<uuid:channel_id>/enable", views.enable, name="channel-enable"),
    path("settings/channels/<uuid:channel_id>/delete", views.delete, name="channel-delete"),
    path("settings/channels/<uuid:channel_id>/test", views.test, name="channel-test"),
    path("settings/deliveries/<uuid:delivery_id>/", views.delivery, name="delivery"),
    path(
        "settings/deliveries/<uuid:delivery_id>/redeliver",
        views.redeliver,
        name="delivery-redeliver",
    ),
]
