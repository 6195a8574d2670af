"""What our applications share about PostgreSQL; it has no tables."""
