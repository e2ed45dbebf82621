"""Reading a queue and changing it, for operators and tools."""
