-- Returns sessions of this database whose transaction does nothing, the oldest first.
SELECT a.pid, coalesce(a.usename, '?')::text, coalesce(nullif(a.application_name, ''), '?'),
    extract(epoch FROM clock_timestamp() - a.state_change)::float8
FROM pg_catalog.pg_stat_activity a
WHERE a.datname = current_database() AND a.state LIKE 'idle in transaction%'
    AND a.state_change < clock_timestamp() - :age::float8 * interval '1 second'
ORDER BY a.state_change LIMIT 10
