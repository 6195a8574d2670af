"""The points of a series along the commits, with change points, breaks and annotations."""
