"""Claiming jobs, running them and settling what became of them."""
