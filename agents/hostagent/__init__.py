"""Pitwall's agent: runs benchmark jobs on a host. Standard library only, Python 3.9 and newer."""
