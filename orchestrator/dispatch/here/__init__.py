"""A measurement on this machine without any server: the engine's own plans, agent and verdicts.

The rows of a run are made and never stored, so that the same code reads them; there is no database.
"""
