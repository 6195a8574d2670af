"""Export one project with all its data to a file, and import it into another Pitwall."""
