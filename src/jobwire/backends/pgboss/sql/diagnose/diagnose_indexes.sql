-- Returns the indexes of the tables that hold jobs: table, index, whether it is valid, whether a constraint owns it.
SELECT t.relname::text, i.relname::text, x.indisvalid, EXISTS (
        SELECT FROM pg_catalog.pg_constraint k WHERE k.conindid = i.oid
    )
FROM pg_catalog.pg_index x
JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
JOIN pg_catalog.pg_class t ON t.oid = x.indrelid
JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname = :schema AND t.relname = ANY (:tables::text[])
LIMIT 10000
