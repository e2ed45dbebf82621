"""Duties that run beside the jobs: recovering, scheduling, deleting what is old."""
