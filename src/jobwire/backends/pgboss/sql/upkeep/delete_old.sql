-- Deletes jobs that have been finished, or have waited, for longer than they are kept. Returns the number of them.
WITH old AS (
    SELECT j.name, j.id FROM {job} j
    WHERE j.name = :queue AND (
        (j.deletion_seconds > 0 AND j.completed_on < {now} - j.deletion_seconds * interval '1 second')
        OR (j.state < 'active' AND j.keep_until < {now})
    )
    LIMIT 10000
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {job} j USING old WHERE j.name = old.name AND j.id = old.id RETURNING j.id
{forget_side}
)
SELECT count(*) FROM gone
