-- Who names a queue as dead letter: other queues, or jobs of theirs.
SELECT q.name FROM {schema}.queue q WHERE q.dead_letter = :queue
UNION
SELECT j.name FROM {schema}.job j WHERE j.dead_letter = :queue AND j.name <> :queue
