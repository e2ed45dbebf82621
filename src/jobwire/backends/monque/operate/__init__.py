"""Reads and changes queues and their jobs, for operators and tools."""
