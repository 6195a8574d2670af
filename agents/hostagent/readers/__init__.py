"""Readers of load tools: each reduces the output of one tool to rows.json."""
