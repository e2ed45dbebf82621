"""BullMQ queues for the pipeline."""
