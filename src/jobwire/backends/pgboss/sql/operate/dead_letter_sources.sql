-- Returns the queues that have this one as their dead letter queue, or hold jobs that have.
SELECT q.name FROM {schema}.queue q WHERE q.dead_letter = :queue
UNION
SELECT j.name FROM {schema}.job j WHERE j.dead_letter = :queue AND j.name <> :queue
