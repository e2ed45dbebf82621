-- Stores the number of finished jobs that a queue keeps, except those of the last ten seconds, which every count adds.
UPDATE {schema}.queue q
SET retained_count = (
        SELECT count(*) FROM {job} j WHERE j.name = :queue AND j.state IN ('completed', 'cancelled')
            AND j.completed_on <= {now} - interval '10 seconds'
    ),
    retained_on = {now} - interval '10 seconds'
WHERE q.name = :queue
