-- Whether a prepared transaction has written to the table: a lock without a process is held by one.
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_locks l
    WHERE l.pid IS NULL AND l.locktype = 'relation' AND l.relation = $1::oid
        AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
)
