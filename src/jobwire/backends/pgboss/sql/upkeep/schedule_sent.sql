-- Stores the id of the job that a schedule made last.
UPDATE {schema}.schedule SET last_job_id = :id::uuid WHERE name = :queue AND key = :key
