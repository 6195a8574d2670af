"""What a project keeps and for how long, pins, and the removal of the rest."""
