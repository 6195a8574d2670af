"""A client library: responses over one connection."""

import http.client


class Fetcher:
    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=timeout_s)

    def fetch(self, path: str) -> tuple[int, bytes]:
        """Return the status and the body."""
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        return response.status, response.read()
