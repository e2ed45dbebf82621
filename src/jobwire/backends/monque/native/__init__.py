"""Features that only this protocol has."""
