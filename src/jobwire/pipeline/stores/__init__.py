"""One folder per protocol, behind one boundary: queues read and written in bulk, and how protocols differ."""
