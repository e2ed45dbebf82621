-- Write down how many finished jobs a queue still keeps, but for those of the last moments, which every count adds.
UPDATE {schema}.queue q
SET retained_count = (
        SELECT count(*) FROM {job} j WHERE j.name = :queue AND j.state IN ('completed', 'cancelled')
            AND j.completed_on <= {now} - interval '10 seconds'
    ),
    retained_on = {now} - interval '10 seconds'
WHERE q.name = :queue
