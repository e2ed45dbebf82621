"""What every Redis protocol shares: connections, Lua scripts, the meaning of errors."""
