"""One trial: what it left behind, what it cost, how much of it is to be believed."""
