-- The tables that prepared transactions have written to: a lock without a process is held by one.
SELECT DISTINCT l.relation::bigint FROM pg_catalog.pg_locks l
WHERE l.pid IS NULL AND l.locktype = 'relation'
    AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
