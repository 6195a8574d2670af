"""The pages."""

urlpatterns: list[object] = []
