"""The tables of what was measured, and of what was concluded from it."""
