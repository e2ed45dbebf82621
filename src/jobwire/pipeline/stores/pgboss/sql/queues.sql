-- The queues of a schema, without those that pg-boss keeps for itself.
SELECT name FROM {schema}.queue WHERE name NOT LIKE '\_\_pgboss\_\_%' ORDER BY name COLLATE "C"
