"""Metrics, health, tracing and logs of workers. Each module imports the packages that it needs when it is imported."""
