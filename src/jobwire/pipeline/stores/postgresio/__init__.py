"""PostgreSQL for the pipeline: connections, rows as Arrow batches, ranges of ids."""
