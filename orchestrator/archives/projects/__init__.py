"""One project with all that belongs to it, as a file that another Pitwall reads."""
