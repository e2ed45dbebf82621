"""Adding jobs and schedules."""
