"""The supervisor of a step, and the builds and trials of its round in order."""
