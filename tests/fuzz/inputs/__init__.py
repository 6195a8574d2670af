"""Malformed input: real samples, changed at random, for all parsers of foreign data."""
