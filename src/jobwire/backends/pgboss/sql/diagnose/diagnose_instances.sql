-- Returns the versions of pg-boss that run now, and the number of processes of each.
SELECT i.version, count(*) FROM {schema}.instance i
WHERE i.stopped_on IS NULL AND i.heartbeat_on >= {now} - i.heartbeat_seconds * interval '3 seconds'
GROUP BY i.version ORDER BY i.version LIMIT 100
