-- Returns every queue as it is stored.
SELECT q.name, to_jsonb(q) FROM {schema}.queue q
WHERE q.name NOT LIKE '\_\_pgboss\_\_%'
ORDER BY q.name
