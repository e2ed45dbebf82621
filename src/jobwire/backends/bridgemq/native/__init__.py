"""Features that only this protocol has: routing."""
