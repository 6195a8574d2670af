"""Formats of messages: one module per kind of channel, listed in `registry`."""
