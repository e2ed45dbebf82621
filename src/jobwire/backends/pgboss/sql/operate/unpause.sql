-- Ends the pause of a queue, and wakes its workers.
WITH gone AS (
    DELETE FROM {side}.held WHERE name = :queue RETURNING 1
)
SELECT pg_notify(:own_channel, :queue) FROM gone
