"""Monque queues on MongoDB, for the pipeline."""
