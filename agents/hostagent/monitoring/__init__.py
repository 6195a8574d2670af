"""The state of a host before a trial, and its monitoring while a load runs."""
