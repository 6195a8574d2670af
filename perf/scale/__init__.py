"""Benchmark of pages and ingest: generated data, databases, page requests, ingest."""
