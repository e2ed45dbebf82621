"""The store itself, inside this process."""
