-- Subscribes a queue to an event: it gets a copy of every job that is published under it.
INSERT INTO {schema}.subscription (event, name) VALUES (:event, :queue)
ON CONFLICT (event, name) DO UPDATE SET updated_on = {now}
