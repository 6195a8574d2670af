"""Change points of series, confirmation runs, and the bisection to one commit."""
