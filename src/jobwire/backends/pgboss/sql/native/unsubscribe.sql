-- Ends a queue's subscription to an event.
DELETE FROM {schema}.subscription WHERE event = :event AND name = :queue RETURNING 1
