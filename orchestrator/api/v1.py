"""Version 1 of the REST API."""

from ninja import NinjaAPI

api = NinjaAPI(title="Pitwall", version="1", urls_namespace="api-v1")
