"""The connection to the server, side data, change streams, the server's clock and errors."""
