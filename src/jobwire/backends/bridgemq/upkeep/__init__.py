"""Duties that run beside the jobs: recovering, scheduling, deleting old data."""
