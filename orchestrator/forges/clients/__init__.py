"""The HTTP APIs of forges, behind one interface of four verbs."""
