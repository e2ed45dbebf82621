-- Returns the tables of the schema of side data.
SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :side AND c.relkind IN ('r', 'p')
