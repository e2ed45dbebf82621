"""Claiming and draining a Monque collection: jobwire beside the peer's way, on one server, in one run."""
