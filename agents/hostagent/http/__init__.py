"""Requests to a server over HTTP/1.1, HTTP/2 and gRPC, and the check of its responses."""
