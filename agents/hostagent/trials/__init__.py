"""One trial: its services, checks, loads and capacity search."""
