"""pg-boss queues on PostgreSQL, for the pipeline."""
