"""How each kind of channel says things: one module a kind, and `registry` to find it."""
