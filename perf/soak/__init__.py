"""Runs without a pause, faults at random, and what is left and grown at the end."""
