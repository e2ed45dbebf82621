"""What talks to the server, and what its errors mean."""
