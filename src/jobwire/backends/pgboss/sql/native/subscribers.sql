-- Returns the queues that have subscribed to an event.
SELECT name FROM {schema}.subscription WHERE event = :event ORDER BY name
