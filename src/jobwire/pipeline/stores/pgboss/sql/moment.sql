-- The database's time; since when a transaction is open that may still write rows with an earlier one; whether there
-- is one whose beginning is hidden from this user. On a standby the time is that of what it has replayed, and the
-- transactions of its primary are all hidden.
WITH session AS MATERIALIZED (
    SELECT a.pid, a.xact_start, a.backend_type, a.query = '<insufficient privilege>' AS hidden
    FROM pg_catalog.pg_stat_activity a
    WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
), clock AS (
    SELECT CASE
        WHEN pg_is_in_recovery() THEN coalesce(pg_last_xact_replay_timestamp(), now())
        ELSE now()
    END AS at
)
SELECT
    (extract(epoch FROM c.at) * 1000000)::bigint,
    (
        SELECT (extract(epoch FROM least(c.at, min(s.xact_start))) * 1000000)::bigint FROM session s
        WHERE s.backend_type NOT IN ('autovacuum worker', 'walsender')
    ),
    pg_is_in_recovery() OR EXISTS (
        SELECT FROM session s
        JOIN pg_catalog.pg_locks l ON l.pid = s.pid AND l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock'
        WHERE s.hidden
    )
FROM clock c
