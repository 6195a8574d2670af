"""Figures that others have published, beside what was measured here."""
