"""What was measured: trials, results that others send, their validity and their provenance."""
