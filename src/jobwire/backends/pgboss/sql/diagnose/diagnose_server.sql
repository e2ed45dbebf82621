-- Returns the server's version, its time, and whether it is a standby.
SELECT current_setting('server_version'), extract(epoch FROM clock_timestamp())::float8, pg_is_in_recovery()
