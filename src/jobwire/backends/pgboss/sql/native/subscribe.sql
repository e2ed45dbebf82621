-- Let a queue have a copy of every job published under an event.
INSERT INTO {schema}.subscription (event, name) VALUES (:event, :queue)
ON CONFLICT (event, name) DO UPDATE SET updated_on = {now}
