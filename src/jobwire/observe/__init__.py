"""Seeing what workers do: metrics, health, tracing, logs. Each module asks for its own packages, and only when used."""
