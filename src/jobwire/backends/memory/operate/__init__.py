"""Reading a queue and changing it: what operators and tools use."""
