"""Claiming jobs and settling their outcomes."""
