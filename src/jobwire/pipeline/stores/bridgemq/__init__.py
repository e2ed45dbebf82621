"""BridgeMQ job types for the pipeline."""
