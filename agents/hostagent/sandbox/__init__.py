"""The sandbox of measured code: its user, directories, TLS files and placeholders."""
