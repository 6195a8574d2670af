"""One metric of one case on one host along the commits."""
