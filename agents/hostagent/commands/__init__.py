"""The commands of the agent, one module each; see cli.py."""
