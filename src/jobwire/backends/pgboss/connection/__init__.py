"""Connections to the server, the schema found there, statements and errors."""
