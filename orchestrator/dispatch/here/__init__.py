"""A measurement on this machine without a server, with the engine's plans, agent and verdicts.

The rows of a run are created in memory for the same code; there is no database.
"""
