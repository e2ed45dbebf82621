"""Connections, Lua scripts and errors: code that every Redis protocol shares."""
