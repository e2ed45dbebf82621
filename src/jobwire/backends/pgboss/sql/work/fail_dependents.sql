-- Fails jobs that wait for a job that has failed for good, was cancelled or is gone: those that wait for the given jobs, or all of one queue.
-- Only jobs that have the mark of ours in their data: a job of a peer's own flow goes on waiting, as in pg-boss. A job can still become ready
-- if as many of its parents as it waits for are pending, or have completed and are not counted yet.
WITH waiting AS MATERIALIZED (
    SELECT
        DISTINCT --? of_these
        j.name, j.id, j.pending_dependencies AS pending
    FROM unnest(:names::text[], :ids::uuid[]) AS f (name, id) --? of_these
    JOIN {schema}.job_dependency d ON d.parent_name = f.name AND d.parent_id = f.id --? of_these
    JOIN {schema}.job j ON j.name = d.child_name AND j.id = d.child_id --? of_these
    FROM {job} j --! of_these
    WHERE j.blocked AND j.state IN ('created', 'retry') AND j.data ? :mark
        AND j.name = :queue --! of_these
), doomed AS MATERIALIZED (
    SELECT w.name, w.id, max(
        format('job %s of queue %s, whose result it needs, ', p.id, p.name) || CASE p.state
            WHEN 'cancelled' THEN 'was cancelled'
            ELSE 'failed' || coalesce(': ' || coalesce(p.output ->> 'message', p.output -> 'value' ->> 'message'), '')
        END
    ) FILTER (WHERE p.state IN ('failed', 'cancelled')) AS reason
    FROM waiting w
    LEFT JOIN {schema}.job_dependency d ON d.child_name = w.name AND d.child_id = w.id
    LEFT JOIN {schema}.job p ON p.name = d.parent_name AND p.id = d.parent_id
    GROUP BY w.name, w.id, w.pending
    HAVING count(*) FILTER (WHERE p.blocking AND p.state NOT IN ('failed', 'cancelled')) < w.pending
), locked AS MATERIALIZED (
    SELECT j.name, j.id, coalesce(d.reason, 'a job whose result it needs is no longer in the store') AS reason
    FROM doomed d JOIN {schema}.job j ON j.name = d.name AND j.id = d.id
    WHERE j.blocked AND j.state < 'active'
    ORDER BY j.id::text
    FOR UPDATE OF j
)
UPDATE {schema}.job j
SET state = 'failed', completed_on = {now},
    output = jsonb_build_object('name', 'Error', 'message', l.reason, 'stack', l.reason)
FROM locked l
WHERE j.name = l.name AND j.id = l.id AND j.blocked AND j.state < 'active'
RETURNING j.name, j.id
