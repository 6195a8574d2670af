"""Change points: found, measured again in duels, followed to one commit."""
