-- Returns the tables of the two schemas: live and dead rows, the last vacuum, and whether autovacuum leaves them out.
SELECT t.schemaname || '.' || t.relname, t.n_live_tup, t.n_dead_tup,
    greatest(t.last_autovacuum, t.last_vacuum)::text,
    coalesce('autovacuum_enabled=false' = ANY (c.reloptions) OR 'autovacuum_enabled=off' = ANY (c.reloptions), false)
FROM pg_catalog.pg_stat_all_tables t JOIN pg_catalog.pg_class c ON c.oid = t.relid
WHERE t.schemaname = :schema OR t.schemaname = :side
ORDER BY t.n_dead_tup DESC, t.relname LIMIT 1000
