"""Readers of results that others measured: each a pure `read(content) -> rows`; see `registry`."""
