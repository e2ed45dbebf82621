-- Where the jobs of queues are, with the columns of that table in their order.
SELECT
    q.name,
    q.table_name,
    q.expire_seconds,
    q.deletion_seconds,
    q.retention_seconds,
    c.oid::bigint,
    (
        SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    ),
    (
        SELECT array_agg(t.typname::text ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
        JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    ),
    to_regclass($2) IS NOT NULL,
    to_regclass($4) IS NOT NULL
FROM {schema}.queue q
JOIN pg_catalog.pg_class c ON c.oid = to_regclass(format('%s.%I', $3::text, q.table_name))
WHERE q.name = ANY ($1)
