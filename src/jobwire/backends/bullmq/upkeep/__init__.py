"""Duties that run beside the jobs."""
