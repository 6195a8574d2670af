"""What measured code gets: its user, directories, TLS files and placeholders."""
