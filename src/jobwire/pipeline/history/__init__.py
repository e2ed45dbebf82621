"""From events and jobs to history: ingest into bronze, build silver and gold."""
