"""Duties that run beside the jobs: they recover jobs, run schedules and delete old data."""
