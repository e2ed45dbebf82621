"""The tables of campaigns on PostgreSQL, for the pipeline."""
