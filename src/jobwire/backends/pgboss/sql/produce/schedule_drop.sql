-- Deletes the schedule of a key.
DELETE FROM {schema}.schedule WHERE name = :queue AND key = :key RETURNING 1
