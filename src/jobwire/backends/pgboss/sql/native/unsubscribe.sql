-- Let it have no more of them.
DELETE FROM {schema}.subscription WHERE event = :event AND name = :queue RETURNING 1
