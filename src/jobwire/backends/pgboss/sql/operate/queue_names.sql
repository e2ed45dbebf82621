-- Returns the queues, without those that pg-boss makes for itself, and the table of each.
SELECT q.name, q.table_name FROM {schema}.queue q
WHERE q.name NOT LIKE '\_\_pgboss\_\_%'
    AND q.name = ANY (:queues::text[]) --? only
ORDER BY q.name
