"""Readers of results of other tools: each a pure `read(content) -> rows`; see `registry`."""
