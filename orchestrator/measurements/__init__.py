"""Measured data: trials, results that clients send, their validity and their provenance."""
