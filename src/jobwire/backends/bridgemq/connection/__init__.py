"""The connection to the server, its clock, and the version of the side data."""
