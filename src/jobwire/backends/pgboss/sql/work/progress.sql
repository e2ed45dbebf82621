-- Stores the progress of a job, if the job exists.
INSERT INTO {side}.progress (name, id, value)
SELECT j.name, j.id, :value FROM {job} j WHERE j.name = :queue AND j.id = :id::uuid
ON CONFLICT (name, id) DO UPDATE SET value = excluded.value
RETURNING 1
