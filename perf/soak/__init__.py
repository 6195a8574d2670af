"""Runs without a pause and random faults; the end checks for losses, leftovers and growth."""
