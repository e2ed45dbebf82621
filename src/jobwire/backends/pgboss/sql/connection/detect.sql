-- Returns the tables of a schema with their columns, and a row `job_now()` if it has that function.
SELECT c.relname, array_to_json(array_agg(a.attname))
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE n.nspname = :schema AND c.relkind IN ('r', 'p')
  AND c.relname IN ('version', 'job', 'queue', 'schedule', 'subscription', 'job_dependency', 'warning', 'queue_stats',
                    'bam', 'instance')
GROUP BY c.relname
UNION ALL
SELECT 'job_now()', '[]' WHERE EXISTS (
    SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = :schema AND p.proname = 'job_now'
)
