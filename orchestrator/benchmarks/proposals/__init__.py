"""Proposals of a definition for a repository, from a bounded number of its files."""
